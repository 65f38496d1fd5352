// Pair energies by tile pairs on GPUs, each pair of atoms once for both of them. Second dimension: chunks of steps
// around the ring; third: conformations.
#include "common/real.clh"
#include "engine/arguments.clh"
#include "energy/squares/pair.clh"

kernel __attribute__((reqd_work_group_size(TILE, SHARES, 1)))
void pair_squares(
    const int n_tiles,
    const int first_frozen_pair,                // PairSquares, energy/squares/pair.clh
    const PairModel model,
    global const real4 *restrict points,
    global const real4 *restrict origins,
    global const real4 *restrict extents,
    global const real *restrict largest_born,
    global const int *restrict special_starts,
    global const int *restrict specials,
    global const SAME_BITS *restrict masks,
    const RingSteps ring,
    LAYERS_PARAMETERS,                          // Layers, energy/squares/collect.clh
    global const int2 *restrict dispatch)       // (n_rows * n_chunks) row and chunk of each group, longest first
{
    SERVES_ROWS(pair_squares)
    local PairMemory memory;
    const int2 own = dispatch[get_group_id(0) + rows_of(n_tiles) * get_group_id(1)];
    const PairSquares pairs = {
        first_frozen_pair, model, points, traits, origins, extents, largest_born, counts, special_starts, specials, masks};
    const Layers to = LAYERS_GIVEN;
    add_pairs(own.x, own.y, &memory, &pairs, ring, &to);
}
