// Adds the potentials of all ions to a map, in the order of placement. One work-group per block.
#include "common/real.clh"
#include "ions/block.clh"

kernel void add_all(
    const int4 blocks,                     // number of blocks along x, y, z
    const real4 spacing,                   // [A]
    const int n_ions,
    global const real4 *restrict ions,     // (n_ions) x, y, z [steps]
    global const real *restrict charges,   // (n_ions) [kcal A/mol/e]
    global real *restrict map)             // (points, padded) potential [kcal/mol/e]; not finite at the point of an ion
{
    const int item = get_local_id(0);
    const int4 corner = corner_of(get_group_id(0), blocks);
    Own own;
    for (int start = 0; start < N_ROWS; start += NY * ROW_STEP) {
        load_rows(&own, start, item, corner, blocks, map);
        for (int j = 0; j < n_ions; ++j) add_ion(&own, ions[j], charges[j], spacing);
        store_rows(&own, map);
    }
}
