// Surface integrals 1/B of all atoms over the exposed points; eq. 2 of docs/theory/sgb.md. Each work-group owns CENTRES
// atoms of one conformation (third dimension) and a part of the spheres (second dimension). It compacts their exposed
// points into a list, sphere by sphere. Its work-items sum over this list for vectors of atoms, always in the same
// order.
//
// The contribution of a point p at distance r is (d.u + R) / r^4, and r^2 = d^2 + R^2 + 2 R d.u; this equals (1/r^2 +
// (R^2 - d^2)/r^4) / 2R.
#include "common/real.clh"
#include "common/barrier.clh"
#include "engine/arguments.clh"
#include "energy/sgb/group.clh"
#include "energy/sgb/moments.clh"

#define ROOM 256  // points that are summed together

kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void surface_integrals(
    const int n_tiles,
    const int n_centres,                        // slots per work-group
    const int n_parts,                          // of the spheres
    const int n_spheres,                        // per part, at most
    global const real4 *restrict points,        // (n_conformations, n_slots) x, y, z from the tile's origin [A]
    global const real *restrict x,              // the same as columns
    global const real *restrict y,
    global const real *restrict z,
    global const real4 *restrict origins,       // (n_conformations, n_tiles) [A]
    global const real4 *restrict parameters,    // (n_slots) radius of the surface [A] first, 0 at unused slots
    global const real4 *restrict units,         // (32 WORDS) points of the unit sphere
    global const int *restrict exposed,         // (n_conformations, n_slots, WORDS) bits of points.cl
    global const real *restrict moments,        // (n_conformations, n_slots, PRODUCTS), if used
    global real *restrict sums)                 // (n_conformations, n_parts, n_slots) [1/A]
{
    SERVES_ROWS(surface_integrals)
    local ushort lined[32 * WORDS];
    local int firsts[WORDS + 1];
    local real4 line[ROOM];
    const int item = get_local_id(0), part = get_group_id(1), conformation = get_global_id(2), n_slots = n_tiles * TILE;
    const size_t at = (size_t)conformation * n_slots, box = (size_t)conformation * n_tiles;
    const int first = get_group_id(0) * n_centres + item * WIDTH, end = min((int)(get_group_id(0) + 1) * n_centres, n_slots);
    const int first_sphere = n_spheres * part, last = min(first_sphere + n_spheres, n_slots);
    global real *out = sums + ((size_t)conformation * n_parts + part) * n_slots;
    for (int i = first; i < end; i += ITEMS * WIDTH) STORE((realv)0, i, out);
    for (int j = first_sphere; j < last; ++j) {
        const real radius = parameters[j].x, share = radius / (2 * 32 * WORDS);
        global const int *bits = exposed + (at + j) * WORDS;
        for (int w = item; w < WORDS; w += ITEMS) firsts[w + 1] = popcount(bits[w]);
        if (item == 0) firsts[0] = 0;
        GROUP_BARRIER(ITEMS, CLK_LOCAL_MEM_FENCE);
        if (item == 0)
            for (int w = 0; w < WORDS; ++w) firsts[w + 1] += firsts[w];
        GROUP_BARRIER(ITEMS, CLK_LOCAL_MEM_FENCE);
        const int count = firsts[WORDS];
        for (int w = item; w < WORDS; w += ITEMS) {
            int place = firsts[w];
            for (int k = 0; k < 32; ++k)
                if (bits[w] >> k & 1) lined[place++] = (ushort)(32 * w + k);
        }
        const real4 point = points[at + j], origin = origins[box + j / TILE];
        for (int start = 0; start < count; start += ROOM) {
            const int size = min(ROOM, count - start);
            GROUP_BARRIER(ITEMS, CLK_LOCAL_MEM_FENCE);
            for (int k = item; k < size; k += ITEMS) line[k] = 2 * radius * units[lined[start + k]];
            GROUP_BARRIER(ITEMS, CLK_LOCAL_MEM_FENCE);
            for (int i = first; i < end; i += ITEMS * WIDTH) {
                const real4 shift = origin - origins[box + i / TILE] + point;
                const realv dx = shift.x - LOAD(i, x + at), dy = shift.y - LOAD(i, y + at), dz = shift.z - LOAD(i, z + at);
                const realv d2 = dx * dx + dy * dy + dz * dz, middle = d2 + radius * radius;
#if HAS_MOMENTS
                if (!ANY(d2 < (realv)(FAR_RADII2 * radius * radius))) {
                    const realv sum = far_sum(dx, dy, dz, d2, radius, moments + (at + j) * PRODUCTS);
                    if (start == 0) STORE(LOAD(i, out) + sum * share, i, out);
                    continue;
                }
#endif
                realv once = 0, twice = 0;
                for (int k = 0; k < size; ++k) {
                    const realv inv_r2 = inverse(middle + dx * line[k].x + dy * line[k].y + dz * line[k].z);
                    once += inv_r2;
                    twice += inv_r2 * inv_r2;
                }
                STORE(LOAD(i, out) + (once + (radius * radius - d2) * twice) * share, i, out);
            }
        }
        GROUP_BARRIER(ITEMS, CLK_LOCAL_MEM_FENCE);
    }
}
