// Pair energies by tile pairs, each pair of atoms once for both of them, for GPUs. Second dimension: chunks of steps around
// the ring; third: conformations.
#include "common/real.clh"
#include "energy/squares/pair.clh"

kernel __attribute__((reqd_work_group_size(TILE, SHARES, 1)))
void pair_squares(
    const int n_tiles, PAIR_SQUARES_ARGUMENTS(restrict), const RingSteps ring, COLLECT_ARGUMENTS(restrict)) {
    local PairMemory memory;
    add_pairs(get_group_id(0), get_group_id(1), n_tiles, &memory, PAIR_SQUARES_PASSED, ring, COLLECTED);
}
