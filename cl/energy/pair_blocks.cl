// Pair energies over blocks of two tiles, for CPUs, as a separate launch: energy/pair_blocks.clh.
#include "common/real.clh"
#include "engine/arguments.clh"
#include "energy/pair_blocks.clh"

kernel void pair_blocks(
    RUNS_PARAMETER
    const int n_tiles,
    const int n_parts,
    const int first_frozen,                     // Blocks, common/runs.clh
    const PairModel model,
    global const real4 *restrict points,        // PairBlocks, energy/pair_blocks.clh
    global const real4 *restrict traits,
    global const real *restrict x,              // Blocks
    global const real *restrict y,
    global const real *restrict z,
    global const real *restrict born,           // PairBlocks
    global const real *restrict charges,
    global const real *restrict sigmas,
    global const real *restrict epsilons,
    global const real4 *restrict origins,       // Blocks
    global const real4 *restrict extents,
    global const real *restrict largest_born,   // PairBlocks
    global const int *restrict counts,          // Blocks
    global const int *restrict special_starts,  // PairBlocks
    global const int *restrict specials,
    global const SAME_BITS *restrict masks,
    global real *restrict sums)
{
    SERVES_ROWS(pair_blocks)
    const int part = get_global_id(0);
    const PairBlocks pairs = {
        {PARTS_GIVEN, first_frozen, x, y, z, origins, extents, counts}, model, points, traits, born, charges, sigmas, epsilons,
        largest_born, special_starts, specials, masks, sums};
    if (part < n_parts) add_pair_part(part, &pairs);
}
