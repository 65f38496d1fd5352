// Work-efficient exclusive prefix sum of integers. An up-sweep and a down-sweep over a tree in local memory scan blocks
// of 2 * GROUP (Blelloch 1990). Then the sums of the blocks, themselves scanned, are added to the later blocks. Any
// length.
#include "common/real.clh"

#ifndef GROUP
#error "GROUP: work-items in a work-group, a power of two"
#endif

kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void scan_blocks(
    const int n,
    global int *restrict values,  // (n) input: numbers; output: prefix sums within blocks
    global int *restrict totals)  // (n_blocks) sum of each block
{
    local int tree[2 * GROUP];
    const int item = get_local_id(0), start = 2 * GROUP * get_group_id(0);
    const int left = start + item, right = start + item + GROUP;
    tree[item] = left < n ? values[left] : 0;
    tree[item + GROUP] = right < n ? values[right] : 0;

    int stride = 1;
    for (int nodes = GROUP; nodes > 0; nodes /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item < nodes) tree[stride * (2 * item + 2) - 1] += tree[stride * (2 * item + 1) - 1];
        stride *= 2;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item == 0) {
        totals[get_group_id(0)] = tree[2 * GROUP - 1];
        tree[2 * GROUP - 1] = 0;
    }
    for (int nodes = 1; nodes <= GROUP; nodes *= 2) {
        stride /= 2;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item < nodes) {
            const int low = stride * (2 * item + 1) - 1, high = stride * (2 * item + 2) - 1;
            const int passed = tree[low];
            tree[low] = tree[high];
            tree[high] += passed;
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (left < n) values[left] = tree[item];
    if (right < n) values[right] = tree[item + GROUP];
}

kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void add_totals(
    const int n,
    global int *restrict values,        // (n) input: prefix sums within blocks; output: over all blocks
    global const int *restrict totals)  // (n_blocks) sum of all previous blocks
{
    const int index = 2 * GROUP * get_group_id(0) + get_local_id(0);
    const int before = totals[get_group_id(0)];
    if (index < n) values[index] += before;
    if (index + GROUP < n) values[index + GROUP] += before;
}
