// LCPO surface energy of each heavy atom, and its gradient with respect to the position of that atom: eqs. 1 to 3 of
// docs/theory/surface.md. Each work-group owns a heavy atom of one conformation (third dimension). It lists the
// neighbours of the atom in local memory. Then each work-item combines some of them, WIDTH at a time, with all others.
// On CPUs a group has one work-item and owns all heavy atoms of a tile.
//
// All atoms whose terms depend on the position of an atom are in its list. So groups need no synchronization and never
// write to the same address. The list has the order of the slots, so results are bitwise reproducible.
#include "common/real.clh"
#include "common/barrier.clh"
#include "engine/arguments.clh"
#include "common/tiles.clh"
#include "physics/lcpo.clh"

#ifndef TILE
#error "TILE: slots in a tile"
#endif
#ifndef GROUP
#error "GROUP: work-items of an atom, a multiple of 32, or 1, as where WIDTH is more than 1"
#endif
#ifndef NEIGHBOURS
#error "NEIGHBOURS: that an atom may have, a multiple of WIDTH"
#endif
#ifndef TILES_AROUND
#error "TILES_AROUND: that are listed once for all atoms of a tile on CPUs; where there are more, all tiles are looked at"
#endif
#ifndef GRADIENT
#error "GRADIENT: 1 for the gradient, 0 for energies alone"
#endif

#define FAR_AWAY (real)1e4  // position of padding entries of the list [A]

// Number of marks of lower work-items; *all: total number of marks. words: GROUP / 32, one bit per work-item
INLINE int marks_before(bool mark, int item, local uint *words, int *all) {
#if GROUP == 1
    *all = mark;
    return 0;
#else
    if (item < GROUP / 32) words[item] = 0;
    GROUP_BARRIER(GROUP, CLK_LOCAL_MEM_FENCE);
    if (mark) atomic_or(&words[item / 32], 1u << item % 32);
    GROUP_BARRIER(GROUP, CLK_LOCAL_MEM_FENCE);
    int before = 0;
    *all = 0;
    for (int word = 0; word < GROUP / 32; ++word) {
        const uint bits = words[word];
        *all += popcount(bits);
        if (word < item / 32) before += popcount(bits);
        if (word == item / 32) before += popcount(bits & ((1u << item % 32) - 1u));
    }
    GROUP_BARRIER(GROUP, CLK_LOCAL_MEM_FENCE);
    return before;
#endif
}

// Appends the marked slots, from `slot` on, to the list of `count` slots in ascending order; returns the new count.
INLINE int append(maskv marks, int slot, int count, int item, local int *list, local uint *words) {
#if GROUP == 1 && WIDTH > 1
    SAME_BITS lanes[WIDTH];
    CAT(vstore, WIDTH)(marks, 0, lanes);
    for (int lane = 0; lane < WIDTH; ++lane) {  // branch-free, since the branch would be unpredictable
        list[min(count, NEIGHBOURS)] = slot + lane;
        count += lanes[lane] != 0;
    }
    return count;
#else
    int all;
    const int place = count + marks_before(marks != 0, item, words, &all);
    if (marks && place < NEIGHBOURS) list[place] = slot;
    return count + all;
#endif
}

kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void lcpo_energies(
    const int n_tiles,
    const int n_heavy,
    global const real *restrict x,           // (n_conformations, n_slots) from the tile's origin [A]
    global const real *restrict y,
    global const real *restrict z,
    global const real4 *restrict origins,    // (n_conformations, n_tiles) [A]
    global const real4 *restrict extents,    // (n_tiles) largest radius of the heavy atoms of the tile, with probe [A]
    global const real *restrict largest,     // (n_tiles) largest radius of the tile's heavy atoms, with probe [A]
    global const int *restrict starts,       // (n_tiles + 1) index of the first heavy atom of each tile
    global const int *restrict slots,        // (n_heavy)
    global const real *restrict radii,       // (n_slots) with probe [A]; -FAR_AWAY for slots without a heavy atom
    global const real4 *restrict traits,     // (n_slots) P2, P3, P4 as energies, times 2 pi; P1 times the area of the isolated sphere
    global real4 *restrict pulls)            // (n_conformations, n_heavy) gradient [kcal/mol/A], energy [kcal/mol]
{
    SERVES_ROWS(lcpo_energies)
    // Neighbours: slot; position relative to the atom [A], radius; area of the atom buried by each, P3 + P4 times the
    // area it buries of each.
    local int list[NEIGHBOURS + 1];
    local real near_x[NEIGHBOURS], near_y[NEIGHBOURS], near_z[NEIGHBOURS], near_radii[NEIGHBOURS];
    local real taken[NEIGHBOURS], given[NEIGHBOURS], p2[NEIGHBOURS], p3[NEIGHBOURS], p4[NEIGHBOURS];
    local int near_tiles[GROUP];
    local uint words[(GROUP + 31) / 32];
    local real4 sums[GROUP];
    const int item = get_local_id(0), conformation = get_global_id(2);
    const size_t at = (size_t)conformation * n_tiles * TILE, box = (size_t)conformation * n_tiles;
#if GROUP == 1
    local int around[TILES_AROUND];
    const int own_tile = get_group_id(0), first_own = starts[own_tile], end_own = starts[own_tile + 1];
    const real4 own_origin = origins[box + own_tile], own_extent = extents[box + own_tile];
    int n_around = 0;
    for (int tile = 0; tile < n_tiles && first_own < end_own; ++tile) {
        const real4 shift = own_origin - origins[box + tile], extent = extents[box + tile];
        const real reach = largest[own_tile] + largest[tile];
        if (fabs(shift.x) - own_extent.x - extent.x < reach && box_gap2(shift, own_extent, extent) < reach * reach) {
            around[min(n_around, TILES_AROUND - 1)] = tile;
            ++n_around;
        }
    }
    const int n_looked_at = n_around > TILES_AROUND ? n_tiles : n_around;
#define LOOKED_AT(index) (n_around > TILES_AROUND ? (index) : around[index])
#else
    const int first_own = get_group_id(0), end_own = first_own + 1, n_looked_at = n_tiles;
#define LOOKED_AT(index) (index)
#endif
    for (int own = first_own; own < end_own; ++own) {
        const int slot = slots[own];
        const real radius = radii[slot], square = radius * radius;
        const real4 trait = traits[slot], point = (real4)(x[at + slot], y[at + slot], z[at + slot], 0);
        const real4 origin = origins[box + slot / TILE];
        int count = 0;
        for (int first = 0; first < n_looked_at; first += GROUP) {
            int tile = 0;
            bool is_near = false;
            if (first + item < n_looked_at) {
                tile = LOOKED_AT(first + item);
                const real reach = radius + largest[tile];
                const real4 shift = point + (origin - origins[box + tile]);
                if (fabs(shift.x) - extents[box + tile].x < reach)  // rejects most tiles
                    is_near = box_gap2(shift, (real4)0, extents[box + tile]) < reach * reach;
            }
            int n_near;
            const int place = marks_before(is_near, item, words, &n_near);
            if (is_near) near_tiles[place] = tile;
            GROUP_BARRIER(GROUP, CLK_LOCAL_MEM_FENCE);
            for (int start = 0; start < n_near * TILE; start += GROUP * WIDTH) {
                const int candidate = start + item * WIDTH;
                maskv is_neighbour = 0;
                int met = 0;
                if (candidate < n_near * TILE) {
                    const int tile_met = near_tiles[candidate / TILE];
                    met = tile_met * TILE + candidate % TILE;
                    const real4 shift = origins[box + tile_met] - origin;
                    const realv dx = LOAD(at + met, x) - point.x + shift.x, dy = LOAD(at + met, y) - point.y + shift.y;
                    const realv dz = LOAD(at + met, z) - point.z + shift.z, r2 = dx * dx + dy * dy + dz * dz;
                    const realv reach = fmax(radius + LOAD(met, radii), (realv)0);
                    is_neighbour = r2 < reach * reach & r2 > (realv)0;  // an atom is not its own neighbour
                }
                if (GROUP > 1 || ANY(is_neighbour)) count = append(is_neighbour, met, count, item, list, words);
            }
        }
        const int n = min(count, NEIGHBOURS), end = (n + WIDTH - 1) / WIDTH * WIDTH;
        GROUP_BARRIER(GROUP, CLK_LOCAL_MEM_FENCE);
        for (int k = item; k < end; k += GROUP) {
            const int met = list[min(k, n - 1)];
            const real4 trait_met = traits[met], shift = origins[box + met / TILE] - origin;
            near_x[k] = k < n ? x[at + met] - point.x + shift.x : FAR_AWAY;
            near_y[k] = y[at + met] - point.y + shift.y;
            near_z[k] = z[at + met] - point.z + shift.z;
            near_radii[k] = radii[met];
            p2[k] = trait_met.x;
            p3[k] = trait_met.y;
            p4[k] = trait_met.z;
        }
        GROUP_BARRIER(GROUP, CLK_LOCAL_MEM_FENCE);
        for (int k = item * WIDTH; k < end; k += GROUP * WIDTH) {
            const realv dx = LOAD(k, near_x), dy = LOAD(k, near_y), dz = LOAD(k, near_z), radius_met = LOAD(k, near_radii);
            const realv r2 = dx * dx + dy * dy + dz * dz, inv_r = inverse_sqrt(r2), r = r2 * inv_r;
            const realv squares = square - radius_met * radius_met;
            STORE(BURIED_AREA(radius, r, inv_r, squares), k, taken);
            STORE(LOAD(k, p3) + LOAD(k, p4) * BURIED_AREA(radius_met, r, inv_r, -squares), k, given);
        }
        GROUP_BARRIER(GROUP, CLK_LOCAL_MEM_FENCE);
        realv gx = 0, gy = 0, gz = 0, energy = 0;
        for (int b = item * WIDTH; b < end; b += GROUP * WIDTH) {
            const realv xb = LOAD(b, near_x), yb = LOAD(b, near_y), zb = LOAD(b, near_z), radius_b = LOAD(b, near_radii);
            const realv square_b = radius_b * radius_b, taken_b = LOAD(b, taken);
            realv of_b = 0, given_to_both = 0, of_own = 0, by_b = 0;
            for (int c = 0; c < n; ++c) {
                const real radius_c = near_radii[c];
                const realv dx = near_x[c] - xb, dy = near_y[c] - yb, dz = near_z[c] - zb, reach = radius_b + radius_c;
                const realv r2 = dx * dx + dy * dy + dz * dz, inv_r = inverse_sqrt(r2), r = r2 * inv_r;
                const realv squares = square_b - radius_c * radius_c;
                const maskv meet = r2 < reach * reach & r2 > (realv)0;
                of_b += CHOOSE((realv)0, BURIED_AREA(radius_b, r, inv_r, squares), meet);
#if GRADIENT
                given_to_both += CHOOSE((realv)0, (realv)given[c], meet);
                of_own += CHOOSE((realv)0, (realv)taken[c], meet);
                by_b += CHOOSE((realv)0, p3[c] + p4[c] * BURIED_AREA(radius_c, r, inv_r, -squares), meet);
#endif
            }
            const maskv is_used = xb < (realv)FAR_AWAY;
            energy += CHOOSE((realv)0, trait.x * taken_b + (trait.y + trait.z * taken_b) * of_b, is_used);
#if GRADIENT
            const realv inv_r = inverse_sqrt(xb * xb + yb * yb + zb * zb), squares = square - square_b;
            const realv weight = trait.x + trait.z * of_b + given_to_both;
            const realv weight_b = LOAD(b, p2) + LOAD(b, p4) * of_own + by_b;
            const realv slope = weight * BURIED_SLOPE(radius, inv_r, squares)
                              + weight_b * BURIED_SLOPE(radius_b, inv_r, -squares);
            const realv pull = CHOOSE((realv)0, slope * inv_r, is_used);
            gx -= pull * xb;
            gy -= pull * yb;
            gz -= pull * zb;
#endif
        }
        sums[item] = (real4)(lane_sum(gx), lane_sum(gy), lane_sum(gz), lane_sum(energy));
        GROUP_BARRIER(GROUP, CLK_LOCAL_MEM_FENCE);
        for (int half_size = GROUP / 2; half_size > 0; half_size /= 2) {
            if (item < half_size) sums[item] += sums[item + half_size];
            GROUP_BARRIER(GROUP, CLK_LOCAL_MEM_FENCE);
        }
        if (item == 0) {
            real4 sum = sums[0];
            sum.w += trait.w;
            pulls[(size_t)conformation * n_heavy + own] = count > NEIGHBOURS ? (real4)NAN : sum;
        }
    }
}
