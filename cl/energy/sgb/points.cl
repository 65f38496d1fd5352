// Points of the atoms' spheres that are in no other sphere: a bit each for the dielectric surface, the area of the one that
// a probe reaches; eqs. 1 and 4 of docs/theory/sgb.md. A work-group owns a slot of one conformation (third dimension); its
// work-items test their share of the points against the neighbours, which they look for together.
#include "common/real.clh"

#ifndef TILE
#error "TILE: atoms in a tile"
#endif
#ifndef WORDS
#error "WORDS: work-items of a group, each with 32 points of a sphere"
#endif

#define FOUR_PI (real)12.566370614359172
#define ROOM (4 * WORDS)  // neighbours that are tested together

// A neighbour: the vector to it in units of the own radius, and the cosine beyond which a point is in its sphere.
INLINE real4 neighbour_of(real4 d, real own, real other) {
    const real inv = (real)1 / own, r2 = d.x * d.x + d.y * d.y + d.z * d.z;
    return (real4)(d.x * inv, d.y * inv, d.z * inv, (real)0.5 * ((real)1 + (r2 - other * other) * inv * inv));
}

// The bits of the own points that are in one of the neighbours.
INLINE int hidden_by(local const real4 *near, int count, global const real4 *units, int item, int hidden) {
    for (int k = 0; k < 32; ++k) {
        if (hidden >> k & 1) continue;
        const real4 u = units[k * WORDS + item];
        int inside = 0;
        for (int j = 0; j < count && !inside; ++j)
            inside = u.x * near[j].x + u.y * near[j].y + u.z * near[j].z > near[j].w;
        hidden |= inside << k;
    }
    return hidden;
}

kernel __attribute__((reqd_work_group_size(WORDS, 1, 1)))
void exposed_points(
    const int n_tiles,
    const int n_kinds,                          // 2 with areas, 1 without
    const real probe,                           // radius [A]
    global const real4 *restrict points,        // (n_conformations, n_slots) x, y, z from the tile's origin [A]
    global const real4 *restrict origins,       // (n_conformations, n_tiles) [A]
    global const real4 *restrict parameters,    // (n_slots) radii of the two surfaces [A], gamma, alpha; 0 at unused slots
    global const real4 *restrict units,         // (32 WORDS) points of the unit sphere
    global int *restrict exposed,               // (n_conformations, n_slots, WORDS) bit k of word w: point k WORDS + w
    global real *restrict areas)                // (n_conformations, n_slots) accessible to the probe [A^2]
{
    local real4 near[ROOM];
    local int counts[WORDS];
    local int n_near;
    const int item = get_local_id(0), own = get_group_id(0), conformation = get_global_id(2), n_slots = n_tiles * TILE;
    const size_t at = (size_t)conformation * n_slots, box = (size_t)conformation * n_tiles;
    const real4 point = points[at + own], origin = origins[box + own / TILE], of_own = parameters[own];
    for (int kind = 0; kind < n_kinds; ++kind) {
        const bool has_probe = kind == 1;
        const real added = has_probe ? probe : (real)0, bare = has_probe ? of_own.y : of_own.x;
        const real radius = bare + added;
        int hidden = 0;
        if (item == 0) n_near = 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int start = 0; start < n_slots; start += WORDS) {
            const int j = start + item;
            if (j < n_slots && j != own) {
                const real other_bare = has_probe ? parameters[j].y : parameters[j].x, other = other_bare + added;
                const real4 d = points[at + j] - point + (origins[box + j / TILE] - origin);
                const real reach = radius + other;
                if (other_bare > 0 && bare > 0 && d.x * d.x + d.y * d.y + d.z * d.z < reach * reach)
                    near[atomic_inc(&n_near)] = neighbour_of(d, radius, other);
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            const int count = n_near;
            const bool is_full = count > ROOM - WORDS || start + WORDS >= n_slots;
            if (is_full) hidden = hidden_by(near, count, units, item, hidden);
            barrier(CLK_LOCAL_MEM_FENCE);
            if (is_full && item == 0) n_near = 0;
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        const int bits = bare > 0 ? ~hidden : 0;
        if (kind == 0) exposed[(at + own) * WORDS + item] = bits;
        else {
            counts[item] = popcount(bits);
            barrier(CLK_LOCAL_MEM_FENCE);
            if (item == 0) {
                int sum = 0;
                for (int k = 0; k < WORDS; ++k) sum += counts[k];
                areas[at + own] = FOUR_PI * radius * radius * sum / (32 * WORDS);
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
