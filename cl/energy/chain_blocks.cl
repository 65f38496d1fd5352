// Chain rule over blocks of two tiles, for CPUs, as a launch of its own: energy/chain_blocks.clh.
#include "common/real.clh"
#include "engine/arguments.clh"
#include "energy/chain_blocks.clh"

kernel void chain_blocks(CHAIN_BLOCKS_ARGUMENTS(restrict)) {
    SERVES_ROWS(chain_blocks)
    const int part = get_global_id(0);
    if (part < n_parts) add_chain_part(part, OF_CHAIN_BLOCKS);
}
