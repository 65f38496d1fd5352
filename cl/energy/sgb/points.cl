// Exposed points of the atoms' spheres, those in no other sphere: one bit per point for the dielectric surface, and the
// area accessible to a probe; eqs. 1 and 4 of docs/theory/sgb.md. Each work-group owns a slot of one conformation
// (third dimension); its work-items search for neighbours together, tile by tile, and test words of points against
// them.
#include "common/real.clh"
#include "common/barrier.clh"
#include "engine/arguments.clh"
#include "common/tiles.clh"
#include "energy/sgb/group.clh"
#include "energy/sgb/moments.clh"

#define FOUR_PI (real)12.566370614359172
#define ROOM (64 + TILE)  // neighbours that are tested together

// A neighbour: the vector to it in units of the own radius. The last number is the cosine above which a point is in its
// sphere.
INLINE real4 neighbour_of(real4 d, real own, real other) {
    const real inv = (real)1 / own, r2 = d.x * d.x + d.y * d.y + d.z * d.z;
    return (real4)(d.x * inv, d.y * inv, d.z * inv, (real)0.5 * ((real)1 + (r2 - other * other) * inv * inv));
}

// Bits of the points of a word that are in one of the neighbours.
INLINE int hidden_by(local const real4 *near, int count, global const real *columns, int word) {
    int hidden = 0;
    for (int first = 0; first < 32; first += WIDTH) {
        global const real *own = columns + 32 * word + first;
        const realv x = LOAD(0, own), y = LOAD(32 * WORDS, own), z = LOAD(64 * WORDS, own);
        maskv inside = 0;
#if WIDTH == 1
        for (int j = 0; j < count && !inside; ++j) inside = x * near[j].x + y * near[j].y + z * near[j].z > near[j].w;
        hidden |= inside << first;
#else
        for (int j = 0; j < count; ++j) inside |= x * near[j].x + y * near[j].y + z * near[j].z > (realv)near[j].w;
        SAME_BITS lanes[WIDTH];
        CAT(vstore, WIDTH)(inside, 0, lanes);
        for (int lane = 0; lane < WIDTH; ++lane) hidden |= (int)(lanes[lane] & 1) << (first + lane);
#endif
    }
    return hidden;
}

#if HAS_MOMENTS
// Adds the products of the exposed points of a word.
INLINE void add_products(realv *sums, int exposed, global const real *columns, int word) {
    for (int first = 0; first < 32; first += WIDTH) {
        global const real *own = columns + 32 * word + first;
        real lanes[WIDTH];
        for (int lane = 0; lane < WIDTH; ++lane) lanes[lane] = exposed >> (first + lane) & 1;
        const realv counted = LOAD(0, lanes);
        realv products[PRODUCTS];
        find_products(LOAD(0, own), LOAD(32 * WORDS, own), LOAD(64 * WORDS, own), products);
        for (int k = 0; k < PRODUCTS; ++k) sums[k] += counted * products[k];
    }
}
#endif

kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void exposed_points(
    const int n_tiles,
    const int n_kinds,                          // 2 with areas, 1 without
    const real probe,                           // radius [A]
    const real largest_bare,                    // the largest radius of the dielectric surface, without probe [A]
    const real largest_reached,                 // largest radius of the accessible surface [A]
    global const real4 *restrict points,        // (n_conformations, n_slots) x, y, z from the tile's origin [A]
    global const real4 *restrict origins,       // (n_conformations, n_tiles) [A]
    global const real4 *restrict extents,       // (n_conformations, n_tiles) half edges of the box around the origin [A]
    global const real4 *restrict parameters,    // (n_slots) radii of the two surfaces [A], gamma, alpha; 0 at unused slots
    global const real *restrict columns,        // (3, 32 WORDS) points of the unit sphere
    global int *restrict exposed,               // (n_conformations, n_slots, WORDS) bit k of word w: point 32 w + k
    global real *restrict areas,                // (n_conformations, n_slots) accessible to the probe [A^2]
    global real *restrict moments)              // (n_conformations, n_slots, PRODUCTS) of exposed points, if used
{
    SERVES_ROWS(exposed_points)
#if HAS_MOMENTS
    local real parts[PRODUCTS * ITEMS];
#endif
    local real4 near[ROOM];
    local int hidden[WORDS];
    local int n_near;
    const int item = get_local_id(0), own = get_group_id(0), conformation = get_global_id(2), n_slots = n_tiles * TILE;
    const size_t at = (size_t)conformation * n_slots, box = (size_t)conformation * n_tiles;
    const real4 point = points[at + own], origin = origins[box + own / TILE], of_own = parameters[own], nowhere = 0;
    for (int kind = 0; kind < n_kinds; ++kind) {
        const bool has_probe = kind == 1;
        const real added = has_probe ? probe : (real)0, bare = has_probe ? of_own.y : of_own.x;
        const real radius = bare + added, reach = radius + added + (has_probe ? largest_reached : largest_bare);
        for (int w = item; w < WORDS; w += ITEMS) hidden[w] = bare > 0 ? 0 : ~0;
        if (item == 0) n_near = 0;
        GROUP_BARRIER(ITEMS, CLK_LOCAL_MEM_FENCE);
        for (int tile = 0; tile < n_tiles; ++tile) {
            const real4 shift = origins[box + tile] - origin;
            const bool is_last = tile == n_tiles - 1;
            const bool is_far = box_gap2(shift - point, extents[box + tile], nowhere) > reach * reach;
            if (is_far && !is_last) continue;
            for (int k = item; k < TILE; k += ITEMS) {
                const int j = tile * TILE + k;
                const real other_bare = has_probe ? parameters[j].y : parameters[j].x, other = other_bare + added;
                const real4 d = points[at + j] - point + shift;
                const real both = radius + other;
                if (j != own && other_bare > 0 && bare > 0 && d.x * d.x + d.y * d.y + d.z * d.z < both * both)
                    near[atomic_inc(&n_near)] = neighbour_of(d, radius, other);
            }
            GROUP_BARRIER(ITEMS, CLK_LOCAL_MEM_FENCE);
            const int count = n_near;
            const bool is_full = count > ROOM - TILE || is_last;
            if (is_full)
                for (int w = item; w < WORDS; w += ITEMS)
                    if (~hidden[w]) hidden[w] |= hidden_by(near, count, columns, w);
            GROUP_BARRIER(ITEMS, CLK_LOCAL_MEM_FENCE);
            if (is_full && item == 0) n_near = 0;
            GROUP_BARRIER(ITEMS, CLK_LOCAL_MEM_FENCE);
        }
        if (kind == 0) {
            for (int w = item; w < WORDS; w += ITEMS) exposed[(at + own) * WORDS + w] = ~hidden[w];
#if HAS_MOMENTS
            realv sums[PRODUCTS];
            for (int k = 0; k < PRODUCTS; ++k) sums[k] = 0;
            for (int w = item; w < WORDS; w += ITEMS)
                if (~hidden[w]) add_products(sums, ~hidden[w], columns, w);
            for (int k = 0; k < PRODUCTS; ++k) parts[k * ITEMS + item] = lane_sum(sums[k]);
            GROUP_BARRIER(ITEMS, CLK_LOCAL_MEM_FENCE);
            for (int k = item; k < PRODUCTS; k += ITEMS) {
                real sum = 0;
                for (int of = 0; of < ITEMS; ++of) sum += parts[k * ITEMS + of];
                moments[(at + own) * PRODUCTS + k] = ways[k] * sum;
            }
#endif
        } else if (item == 0) {
            int sum = 0;
            for (int w = 0; w < WORDS; ++w) sum += popcount(~hidden[w]);
            areas[at + own] = FOUR_PI * radius * radius * sum / (32 * WORDS);
        }
        GROUP_BARRIER(ITEMS, CLK_LOCAL_MEM_FENCE);
    }
}
