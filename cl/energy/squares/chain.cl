// The chain rule by tile pairs, each pair of atoms once for both of them, for GPUs. Second dimension: chunks of steps around
// the ring; third: conformations.
#include "common/real.clh"
#include "energy/squares/chain.clh"

kernel __attribute__((reqd_work_group_size(TILE, SHARES, 1)))
void chain_squares(
    const int n_tiles, CHAIN_SQUARES_ARGUMENTS(restrict), const RingSteps ring, COLLECT_ARGUMENTS(restrict)) {
    local ChainMemory memory;
    add_chain(get_group_id(0), get_group_id(1), n_tiles, &memory, CHAIN_SQUARES_PASSED, ring, COLLECTED);
}
