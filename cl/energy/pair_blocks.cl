// Pair energies over blocks of two tiles, for CPUs, as a launch of their own: energy/pair_blocks.clh.
#include "common/real.clh"
#include "engine/arguments.clh"
#include "energy/pair_blocks.clh"

kernel void pair_blocks(PAIR_BLOCKS_ARGUMENTS(restrict)) {
    SERVES_ROWS(pair_blocks)
    const int part = get_global_id(0);
    if (part < n_parts) add_pair_part(part, OF_PAIR_BLOCKS);
}
