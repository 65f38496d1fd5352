// Chain rule over blocks of two tiles, for CPUs, as a separate launch: energy/chain_blocks.clh.
#include "common/real.clh"
#include "engine/arguments.clh"
#include "energy/chain_blocks.clh"

kernel void chain_blocks(
    RUNS_PARAMETER
    const int n_tiles,
    const int n_parts,
    const int first_frozen,                // Blocks, common/runs.clh
    const Reaches reaches,
    NECK_PARAMETERS
    global const real4 *restrict spheres,  // ChainBlocks, energy/chain_blocks.clh
    global const real *restrict x,         // Blocks
    global const real *restrict y,
    global const real *restrict z,
    global const real *restrict weights,   // ChainBlocks
    global const real *restrict s,
    global const real *restrict rho,
    global const real4 *restrict series,
    global const real *restrict columns,
    global const real4 *restrict origins,  // Blocks
    global const real4 *restrict extents,
    global const int *restrict counts,
    global real *restrict sums)            // ChainBlocks
{
    SERVES_ROWS(chain_blocks)
    const int part = get_global_id(0);
    const ChainBlocks chain = {
        {PARTS_GIVEN, first_frozen, x, y, z, origins, extents, counts}, reaches, NECKS_GIVEN, spheres, weights, s, rho, series,
        columns, sums};
    if (part < n_parts) add_chain_part(part, &chain);
}
