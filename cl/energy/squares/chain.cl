// Chain rule by tile pairs, each pair of atoms once for both of them, for GPUs. Second dimension: chunks of steps
// around the ring; third: conformations.
#include "common/real.clh"
#include "engine/arguments.clh"
#include "energy/squares/chain.clh"

kernel __attribute__((reqd_work_group_size(TILE, SHARES, 1)))
void chain_squares(
    const int n_tiles, CHAIN_SQUARES_ARGUMENTS(restrict), const RingSteps ring, COLLECT_ARGUMENTS(restrict),
    global const int2 *restrict dispatch)  // (n_rows * n_chunks) row and chunk of each group, those that take longest first
{
    SERVES_ROWS(chain_squares)
    local ChainMemory memory;
    const int2 own = dispatch[get_group_id(0) + rows_of(n_tiles) * get_group_id(1)];
    add_chain(own.x, own.y, n_tiles, &memory, CHAIN_SQUARES_PASSED, ring, COLLECTED);
}
