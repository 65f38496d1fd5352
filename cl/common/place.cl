// Copies positions to tiles, for all conformations. One work-group per tile, one work-item per slot.
#include "common/real.clh"
#include "engine/arguments.clh"
#include "common/place.clh"

kernel __attribute__((reqd_work_group_size(TILE, 1, 1)))
void place_tiles(
    const int n_tiles,
    const int n_atoms,
    const real step,                              // length of a fixed-point unit [A], a power of two; else 1
    global const coordinate *restrict positions,  // (n_conformations, n_atoms, 3)
    PLACE_PARAMETERS)
{
    SERVES_ROWS(place_tiles)
    local PlaceMemory memory;
    const Placing placing = {
        n_tiles, n_atoms, step, origin_step, positions, order, largest_s, s, charges, coefficients, spheres, points, x, y, z,
        series, origins, extents};
    place_tile(get_group_id(0), get_local_id(0), true, &memory, &placing);
}
