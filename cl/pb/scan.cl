// Prefix sums of counts, by tiles: one group per tile of TILE counts.
#include "common/real.clh"

#ifndef GROUP
#error "GROUP: work-items of a group"
#endif
#define EACH 16  // counts per work-item
#define TILE (EACH * GROUP)

// Sums the counts of each tile.
kernel void sum_tiles(const int n, global const int *restrict counts, global long *restrict tiles) {
    local long sums[GROUP];
    const int item = get_local_id(0), first = get_group_id(0) * TILE;
    long own = 0;
    for (int t = first + item; t < min(first + TILE, n); t += GROUP) own += counts[t];
    sums[item] = own;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item > 0) return;
    for (int t = 1; t < GROUP; ++t) own += sums[t];
    tiles[get_group_id(0)] = own;
}

// Computes the starts of lists. starts : (n + 1), the first is 0; bounds : (n / each + 1) starts of the lists 0, each,
// 2 each, ..., n
kernel void add_up(
    const int n, const int each, global const int *restrict counts, global const long *restrict tiles,
    global int *restrict starts, global long *restrict bounds)
{
    local int own[TILE];
    local long sums[GROUP];
    const int item = get_local_id(0), first = get_group_id(0) * TILE;
    long before = 0;
    for (int t = item; t < get_group_id(0); t += GROUP) before += tiles[t];
    for (int t = item; t < TILE; t += GROUP) own[t] = first + t < n ? counts[first + t] : 0;
    sums[item] = before;
    barrier(CLK_LOCAL_MEM_FENCE);
    before = 0;
    for (int t = 0; t < GROUP; ++t) before += sums[t];
    barrier(CLK_LOCAL_MEM_FENCE);
    sums[item] = 0;
    for (int t = EACH * item; t < EACH * (item + 1); ++t) sums[item] += own[t];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int t = 0; t < item; ++t) before += sums[t];
    for (int t = EACH * item; t < EACH * (item + 1); ++t) {
        const int count = own[t];
        own[t] = (int)before;
        before += count;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int t = item; t < TILE && first + t < n; t += GROUP) {
        starts[first + t] = own[t];
        if ((first + t) % each == 0) bounds[(first + t) / each] = own[t];
    }
    if (item == GROUP - 1 && get_group_id(0) == get_num_groups(0) - 1) {
        starts[n] = (int)before;
        bounds[n / each] = before;
    }
}
