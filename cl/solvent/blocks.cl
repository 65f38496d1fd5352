// HCT sums over blocks of two tiles, for CPUs, as a launch of their own: solvent/blocks.clh.
#include "common/real.clh"
#include "engine/arguments.clh"
#include "solvent/blocks.clh"

kernel void born_sums_blocks(BORN_BLOCKS_ARGUMENTS(restrict)) {
    SERVES_ROWS(born_sums_blocks)
    const int part = get_global_id(0);
    if (part < n_parts) add_born_part(part, OF_BORN_BLOCKS);
}
