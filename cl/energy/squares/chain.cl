// Chain rule by tile pairs on GPUs, each pair of atoms once for both of them. Second dimension: chunks of steps around
// the ring; third: conformations.
#include "common/real.clh"
#include "engine/arguments.clh"
#include "energy/squares/chain.clh"

kernel __attribute__((reqd_work_group_size(TILE, SHARES, 1)))
void chain_squares(
    const int n_tiles,
    const int first_frozen,                     // ChainSquares, energy/squares/chain.clh
    const Reaches reaches,
    NECK_PARAMETERS
    global const real4 *restrict spheres,
    global const real *restrict rho,
    global const real4 *restrict slopes,
    global const real *restrict slope_columns,
    global const real4 *restrict origins,
    global const real4 *restrict extents,
    const RingSteps ring,
    LAYERS_PARAMETERS,                          // Layers, energy/squares/collect.clh
    global const int2 *restrict dispatch)       // (n_rows * n_chunks) row and chunk of each group, longest first
{
    SERVES_ROWS(chain_squares)
    local ChainMemory memory;
    const int2 own = dispatch[get_group_id(0) + rows_of(n_tiles) * get_group_id(1)];
    const ChainSquares chain = {
        first_frozen, reaches, NECKS_GIVEN, spheres, weights, rho, slopes, slope_columns, origins, extents};
    const Layers to = LAYERS_GIVEN;
    add_chain(own.x, own.y, &memory, &chain, ring, &to);
}
