// Born sums and radii in one launch, for the energies of small molecules on GPUs. Second dimension: chunks of tiles; third:
// conformations.
#include "common/real.clh"
#include "engine/arguments.clh"
#include "energy/squares/born.clh"

kernel __attribute__((reqd_work_group_size(TILE, SHARES, 1)))
void born_squares(
    BORN_ARGUMENTS(restrict),
    RADIUS_CONSTANTS(restrict),  // physics/gb_radius.clh
    const real4 solvent,         // of radii_of_row
    global int *arrivals,        // of radii_of_row
    ATOM_ARGUMENTS(restrict))
{
    SERVES_ROWS(born_squares)
    local RadiiMemory memory;
    const int row = get_group_id(0) * ROW;
    add_chunk(row, get_group_id(1), &memory.sums, BORN_PASSED);
    radii_of_row(
        row, n_tiles, born_chunks(n_tiles, tiles_per_chunk), &memory, sums, solvent, radius_constants, arrivals, OF_ATOMS);
}
