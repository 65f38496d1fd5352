// LCPO surface energy of each heavy atom, and its gradient by that atom's position: eqs. 1 to 3 of docs/theory/surface.md.
// A work-group owns a heavy atom of one conformation (third dimension). It lists the atom's neighbours in local memory; then
// each work-item takes some of them and meets them with all others.
//
// The atoms of all terms that move with an atom are in its own list, so no group waits for another and no two write to one
// place. The list has the order of the slots: the bits are the same in every run.
#include "common/real.clh"
#include "common/tiles.clh"
#include "physics/lcpo.clh"

#ifndef TILE
#error "TILE: slots in a tile"
#endif
#ifndef GROUP
#error "GROUP: work-items of an atom, a power of two"
#endif
#ifndef NEIGHBOURS
#error "NEIGHBOURS: that an atom may have, a multiple of WIDTH"
#endif
#ifndef GRADIENT
#error "GRADIENT: 1 for the gradient, 0 for energies alone"
#endif

#if GROUP == 1
#define SYNCHRONISE()
#else
#define SYNCHRONISE() barrier(CLK_LOCAL_MEM_FENCE)
#endif

#define FAR_AWAY (real)1e4  // where the list is filled up [A]

// How many work-items before this one hold a mark; in *all how many do.
INLINE int marks_before(bool mark, int item, local int *scratch, int *all) {
    scratch[item] = mark;
    SYNCHRONISE();
    for (int step = 1; step < GROUP; step *= 2) {
        const int before = item >= step ? scratch[item - step] : 0;
        SYNCHRONISE();
        scratch[item] += before;
        SYNCHRONISE();
    }
    const int before = scratch[item] - mark;
    *all = scratch[GROUP - 1];
    SYNCHRONISE();
    return before;
}

kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void lcpo_energies(
    const int n_tiles,
    const int n_heavy,
    global const real4 *restrict points,     // (n_conformations, n_slots) x, y, z from the tile's origin [A]
    global const real4 *restrict origins,    // (n_conformations, n_tiles) [A]
    global const real4 *restrict extents,    // (n_conformations, n_tiles) half edges of the box [A]
    global const real *restrict largest,     // (n_tiles) largest radius of the tile's heavy atoms, with probe [A]
    global const int *restrict starts,       // (n_tiles + 1) first heavy atom of each tile
    global const int *restrict slots,        // (n_heavy)
    global const real4 *restrict traits,     // (n_heavy) radius with probe [A]; P2, P3, P4 as energies, with 2 pi
    global const real *restrict bare,        // (n_heavy) P1 times the area of the bare sphere, as energy [kcal/mol]
    global real4 *restrict pulls)            // (n_conformations, n_heavy) gradient [kcal/mol/A], energy [kcal/mol]
{
    // Neighbours: from the atom [A], radius; what of the atom each buries, P3 + P4 times what the atom buries of each.
    local real x[NEIGHBOURS], y[NEIGHBOURS], z[NEIGHBOURS], radii[NEIGHBOURS], taken[NEIGHBOURS], given[NEIGHBOURS];
    local real p2[NEIGHBOURS], p3[NEIGHBOURS], p4[NEIGHBOURS];
    local int near_tiles[GROUP], scratch[GROUP];
    local real4 sums[GROUP];
    const int item = get_local_id(0), own = get_group_id(0), own_tile = slots[own] / TILE, conformation = get_global_id(2);
    const size_t at = (size_t)conformation * n_tiles * TILE, box = (size_t)conformation * n_tiles;
    const real4 trait = traits[own], point = points[at + slots[own]], origin = origins[box + own_tile];
    int count = 0;
    for (int first = 0; first < n_tiles; first += GROUP) {
        const int tile = first + item;
        bool is_near = false;
        if (tile < n_tiles) {
            const real reach = trait.x + largest[tile];
            is_near = box_gap2(point + origin - origins[box + tile], (real4)0, extents[box + tile]) < reach * reach;
        }
        int n_near;
        const int place = marks_before(is_near, item, scratch, &n_near);
        if (is_near) near_tiles[place] = tile;
        SYNCHRONISE();
        for (int candidate = item; candidate - item < n_near * TILE; candidate += GROUP) {
            bool is_neighbour = false;
            real4 away = 0;
            int other = 0;
            if (candidate < n_near * TILE) {
                const int met = near_tiles[candidate / TILE];
                other = starts[met] + candidate % TILE;
                if (other < starts[met + 1] && other != own) {
                    away = points[at + slots[other]] - point + (origins[box + met] - origin);
                    const real reach = trait.x + traits[other].x;
                    is_neighbour = away.x * away.x + away.y * away.y + away.z * away.z < reach * reach;
                }
            }
            int found;
            const int k = count + marks_before(is_neighbour, item, scratch, &found);
            if (is_neighbour && k < NEIGHBOURS) {
                const real4 met = traits[other];
                const real r2 = away.x * away.x + away.y * away.y + away.z * away.z, inv_r = (real)1 / sqrt(r2);
                const real r = r2 * inv_r, squares = trait.x * trait.x - met.x * met.x;
                x[k] = away.x;
                y[k] = away.y;
                z[k] = away.z;
                radii[k] = met.x;
                taken[k] = BURIED_AREA(trait.x, r, inv_r, squares);
                given[k] = met.z + met.w * BURIED_AREA(met.x, r, inv_r, -squares);
                p2[k] = met.y;
                p3[k] = met.z;
                p4[k] = met.w;
            }
            count += found;
        }
    }
    const int n = min(count, NEIGHBOURS), end = (n + WIDTH - 1) / WIDTH * WIDTH;
    for (int k = n + item; k < end; k += GROUP) {
        x[k] = FAR_AWAY;
        y[k] = z[k] = radii[k] = taken[k] = given[k] = p3[k] = p4[k] = 0;
    }
    SYNCHRONISE();
    real4 sum = 0;
    for (int b = item; b < n; b += GROUP) {
        const real xb = x[b], yb = y[b], zb = z[b], radius = radii[b], square = radius * radius;
        realv of_b = 0, given_to_both = 0, of_own = 0, by_b = 0;
        for (int c = 0; c < end; c += WIDTH) {
            const realv dx = LOAD(c, x) - xb, dy = LOAD(c, y) - yb, dz = LOAD(c, z) - zb;
            const realv radius_c = LOAD(c, radii), reach = radius + radius_c, r2 = dx * dx + dy * dy + dz * dz;
            // No atom is a neighbour of its own.
            const maskv meet = r2 < reach * reach & r2 > (realv)0;
            const realv inv_r = inverse_sqrt(r2), r = r2 * inv_r, squares = square - radius_c * radius_c;
            of_b += CHOOSE((realv)0, BURIED_AREA(radius, r, inv_r, squares), meet);
#if GRADIENT
            given_to_both += CHOOSE((realv)0, LOAD(c, given), meet);
            of_own += CHOOSE((realv)0, LOAD(c, taken), meet);
            by_b += CHOOSE((realv)0, LOAD(c, p3) + LOAD(c, p4) * BURIED_AREA(radius_c, r, inv_r, -squares), meet);
#endif
        }
        const real met = lane_sum(of_b);
        sum.w += trait.y * taken[b] + (trait.z + trait.w * taken[b]) * met;
#if GRADIENT
        const real inv_r = (real)1 / sqrt(xb * xb + yb * yb + zb * zb), squares = trait.x * trait.x - square;
        const real weight = trait.y + trait.w * met + lane_sum(given_to_both);
        const real weight_b = p2[b] + p4[b] * lane_sum(of_own) + lane_sum(by_b);
        const real slope = weight * BURIED_SLOPE(trait.x, inv_r, squares) + weight_b * BURIED_SLOPE(radius, inv_r, -squares);
        sum.x -= slope * inv_r * xb;
        sum.y -= slope * inv_r * yb;
        sum.z -= slope * inv_r * zb;
#endif
    }
    sums[item] = sum;
    SYNCHRONISE();
    for (int half_size = GROUP / 2; half_size > 0; half_size /= 2) {
        if (item < half_size) sums[item] += sums[item + half_size];
        SYNCHRONISE();
    }
    if (item) return;
    sum = sums[0];
    sum.w += bare[own];
    pulls[(size_t)conformation * n_heavy + own] = count > NEIGHBOURS ? (real4)NAN : sum;
}
