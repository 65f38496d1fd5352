// HCT sums over tiles of spatially sorted atoms, row by row, for GPUs. Second dimension: chunks of tiles, and the work-items
// that share an atom; third: conformations.
#include "common/real.clh"
#include "solvent/born_chunk.clh"

kernel __attribute__((reqd_work_group_size(TILE / WIDTH, SHARES, 1)))
void born_sums(BORN_ARGUMENTS(restrict)) {
    local BornMemory memory;
    // From the global number: a long launch comes in pieces, in each of which the groups are numbered anew.
    add_chunk(get_global_id(0) / (TILE / WIDTH) * ROW, get_global_id(1) / SHARES, &memory, BORN_PASSED);
}
