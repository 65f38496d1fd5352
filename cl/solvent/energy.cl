// GB potential at every atom due to all others. First dimension: own atoms; second: chunks of tiles; third:
// conformations.
#include "common/real.clh"
#include "solvent/potential.clh"

kernel void gb_potential(
    const int n_tiles,                      // Potential, solvent/potential.clh
    const int tiles_per_chunk,
    const real inv_inside,
    const real inv_outside,
    const real kappa,
    global const real4 *restrict points,
    COLUMN_PARAMETERS
    global const real *restrict inv_born,
    global const real4 *restrict origins,
    global const real4 *restrict extents,
    global const int *restrict counts,
    global real *restrict potential)
{
    const Potential all = {
        n_tiles, tiles_per_chunk, inv_inside, inv_outside, kappa, points, COLUMNS_GIVEN, inv_born, origins, extents, counts,
        potential};
    add_potential(get_global_id(0) * WIDTH * VECTORS, get_global_id(1), &all);
}
