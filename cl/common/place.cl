// Positions of one conformation after the other to tiles. A work-group owns a tile, a work-item a slot.
//
// The order of the atoms is given; each tile gets a new origin and a new box. An atom's
// offset from its tile's origin is short, so that float32 holds it wherever the molecule lies.
#include "common/real.clh"

#ifndef TILE
#error "TILE: atoms in a tile, a power of two; also the size of a work-group"
#endif

#include "common/position.clh"

kernel __attribute__((reqd_work_group_size(TILE, 1, 1)))
void place_tiles(
    const int n_tiles,
    const int n_atoms,
    const real step,                           // A of one fixed-point unit, a power of two; else 1
    const coordinate origin_step,              // origins are multiples of this, which makes their differences exact
    global const coordinate *restrict positions,  // (n_conformations, n_atoms, 3)
    global const int *restrict order,          // (n_slots) the atom of each slot
    global const real *restrict largest_s,     // (n_tiles) largest scaled radius [A]
    global const real *restrict s,             // (n_slots) scaled radius [A]
    global const real *restrict charges,       // (n_slots)
    global const real4 *restrict coefficients, // (n_slots, 2) of the HCT series; the first is left free
    global real4 *restrict spheres,            // (n_conformations, n_slots) x, y, z from the tile's origin, s [A]
    global real4 *restrict points,             // (n_conformations, n_slots) x, y, z, charge
    global real *restrict x,                   // (n_conformations, n_slots) the same as columns
    global real *restrict y,
    global real *restrict z,
    global real4 *restrict series,             // (n_conformations, n_slots, 2) x^2 + y^2 + z^2 and coefficients
    global real4 *restrict origins,            // (n_conformations, n_tiles) from where positions count [A]; w = largest s
    global real4 *restrict extents)            // (n_conformations, n_tiles) half edges of the box [A]
{
    local coordinate lowest[3 * TILE], highest[3 * TILE];
    local real widest[3 * TILE];
    const int item = get_local_id(0), i = get_global_id(0), conformation = get_global_id(2);
    const int n_slots = n_tiles * TILE;
    global const coordinate *own = positions + 3 * ((size_t)conformation * n_atoms + order[i]);
    for (int k = 0; k < 3; ++k) lowest[k * TILE + item] = highest[k * TILE + item] = own[k];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int half_size = TILE / 2; half_size > 0; half_size /= 2) {
        if (item < half_size) {
            for (int k = 0; k < 3; ++k) {
                const int slot = k * TILE + item;
                lowest[slot] = min(lowest[slot], lowest[slot + half_size]);
                highest[slot] = max(highest[slot], highest[slot + half_size]);
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    coordinate origin[3];
    real offset[3];
    for (int k = 0; k < 3; ++k) {
#if FIXED_BITS
        // Halves before they are added, since the sum of two may not fit 32 bits.
        origin[k] = (lowest[k * TILE] / 2 + highest[k * TILE] / 2) / origin_step * origin_step;
#else
        origin[k] = rint((lowest[k * TILE] + highest[k * TILE]) / 2 / origin_step) * origin_step;
#endif
        offset[k] = coordinate_difference(own[k], origin[k], step);
        widest[k * TILE + item] = fabs(offset[k]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int half_size = TILE / 2; half_size > 0; half_size /= 2) {
        if (item < half_size)
            for (int k = 0; k < 3; ++k)
                widest[k * TILE + item] = fmax(widest[k * TILE + item], widest[k * TILE + item + half_size]);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    const size_t at = (size_t)conformation * n_slots + i;
    spheres[at] = (real4)(offset[0], offset[1], offset[2], s[i]);
    points[at] = (real4)(offset[0], offset[1], offset[2], charges[i]);
    x[at] = offset[0];
    y[at] = offset[1];
    z[at] = offset[2];
    real4 norm_first = coefficients[2 * i];
    norm_first.x = offset[0] * offset[0] + offset[1] * offset[1] + offset[2] * offset[2];
    series[2 * at] = norm_first;
    series[2 * at + 1] = coefficients[2 * i + 1];
    if (item == 0) {
        const int tile = i / TILE;
        const size_t box = (size_t)conformation * n_tiles + tile;
        real from_middle[3];
        for (int k = 0; k < 3; ++k) from_middle[k] = coordinate_difference(origin[k], 0, step);
        origins[box] = (real4)(from_middle[0], from_middle[1], from_middle[2], largest_s[tile]);
        extents[box] = (real4)(widest[0], widest[TILE], widest[2 * TILE], 0);
    }
}
