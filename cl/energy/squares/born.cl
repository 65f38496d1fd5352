// Born sums and radii in one launch, for energies of small molecules on GPUs. Second dimension: chunks of tiles; third:
// conformations.
#include "common/real.clh"
#include "engine/arguments.clh"
#include "energy/squares/born.clh"

kernel __attribute__((reqd_work_group_size(TILE, SHARES, 1)))
void born_squares(
    const int n_tiles,
    const int first_frozen,                // BornChunks, solvent/born_chunk.clh
    const int tiles_per_chunk,
    const Reaches reaches,
    NECK_PARAMETERS
    global const real4 *restrict spheres,
    COLUMN_PARAMETERS
    global const real *restrict rho,
    global const real4 *restrict series,
    global const real4 *restrict origins,
    global const real4 *restrict extents,
    global const int *restrict counts,
    global real *sums,
    RADIUS_PARAMETER,                      // SingleAtoms, energy/terms.clh
    const real4 solvent,
    global int *arrivals,                  // of radii_of_row
    global const real *restrict parameters,  // SingleAtoms
    global real4 *restrict traits,
    global real4 *restrict singles,
    global real *restrict born,
    global real *restrict largest_born)
{
    SERVES_ROWS(born_squares)
    local RadiiMemory memory;
    const int row = get_group_id(0) * ROW;
    const BornChunks chunks = {
        n_tiles, first_frozen, tiles_per_chunk, reaches, NECKS_GIVEN, spheres, COLUMNS_GIVEN, rho, series, origins, extents,
        counts, sums};
    const SingleAtoms atoms = {radius_constants, solvent, parameters, traits, singles, born, largest_born};
    add_chunk(row, get_group_id(1), &memory.sums, &chunks);
    radii_of_row(row, &memory, &chunks, arrivals, &atoms);
}
