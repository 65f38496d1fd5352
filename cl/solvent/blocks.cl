// HCT sums over blocks of two tiles, for CPUs, as a separate launch: solvent/blocks.clh.
#include "common/real.clh"
#include "engine/arguments.clh"
#include "solvent/blocks.clh"

kernel void born_sums_blocks(
    RUNS_PARAMETER
    const int n_tiles,
    const int n_parts,
    const int first_frozen,                // Blocks, common/runs.clh
    const int first_tile,                  // BornBlocks, solvent/blocks.clh
    const int last_tile,
    const Reaches reaches,
    NECK_PARAMETERS
    global const real4 *restrict atoms,
    global const real *restrict x,         // Blocks
    global const real *restrict y,
    global const real *restrict z,
    global const real *restrict s,         // BornBlocks
    global const real *restrict rho,
    global const real4 *restrict series,
    global const real *restrict columns,
    global const real4 *restrict origins,  // Blocks
    global const real4 *restrict extents,
    global const int *restrict counts,
    global real *restrict sums)            // BornBlocks
{
    SERVES_ROWS(born_sums_blocks)
    const int part = get_global_id(0);
    const BornBlocks born = {
        {PARTS_GIVEN, first_frozen, x, y, z, origins, extents, counts}, first_tile, last_tile, reaches, NECKS_GIVEN, atoms, s,
        rho, series, columns, sums};
    if (part < n_parts) add_born_part(part, &born);
}
