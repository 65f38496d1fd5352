// HCT sums over tiles of spatially sorted atoms, row by row, for GPUs. First dimension: rows of tiles; second: chunks
// of tiles, and the work-items that share an atom; third: conformations.
#include "common/real.clh"
#include "engine/arguments.clh"
#include "solvent/born_chunk.clh"

kernel __attribute__((reqd_work_group_size(TILE / WIDTH, SHARES, 1)))
void born_sums(
    const int n_tiles,
    const int first_frozen,                // BornChunks, solvent/born_chunk.clh
    const int tiles_per_chunk,
    const Reaches reaches,
    NECK_PARAMETERS
    global const real4 *restrict spheres,
    COLUMN_PARAMETERS
    global const real *restrict rho,
    global const real4 *restrict series,
    global const real4 *restrict origins,
    global const real4 *restrict extents,
    global const int *restrict counts,
    global real *sums,
    global const int2 *restrict dispatch)  // (n_rows * n_chunks) row and chunk of each group, longest first
{
    SERVES_ROWS(born_sums)
    local BornMemory memory;
    // From the global id: a long launch is split, and group ids restart at 0 in each part.
    const int n_rows = (n_tiles + ROW - 1) / ROW;
    const int2 own = dispatch[get_global_id(0) / (TILE / WIDTH) + n_rows * (get_global_id(1) / SHARES)];
    const BornChunks born = {
        n_tiles, first_frozen, tiles_per_chunk, reaches, NECKS_GIVEN, spheres, COLUMNS_GIVEN, rho, series, origins, extents,
        counts, sums};
    add_chunk(own.x * ROW, own.y, &memory, &born);
}
