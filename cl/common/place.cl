// Positions of one conformation after the other to tiles. A work-group owns a tile, a work-item a slot.
#include "common/real.clh"
#include "common/place.clh"

kernel __attribute__((reqd_work_group_size(TILE, 1, 1)))
void place_tiles(
    const int n_tiles,
    const int n_atoms,
    const real step,                              // A of one fixed-point unit, a power of two; else 1
    global const coordinate *restrict positions,  // (n_conformations, n_atoms, 3)
    PLACE_ARGUMENTS(restrict))
{
    local coordinate lowest[3 * TILE], highest[3 * TILE];
    const int item = get_local_id(0), i = get_global_id(0);
    global const coordinate *own = positions + 3 * ((size_t)get_global_id(2) * n_atoms + order[i]);
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
    const coordinate least[3] = {lowest[0], lowest[TILE], lowest[2 * TILE]};
    const coordinate most[3] = {highest[0], highest[TILE], highest[2 * TILE]};
    place_slot(i, n_tiles, n_atoms, step, positions, least, most, PLACED);
}
