// A bitonic sorting network (Batcher 1968) for 64-bit keys, ascending, any length.
//
// Every merge starts by comparing each index with its mirror image in the span, and continues with halved distances,
// all in the same direction. Indices beyond the end then act as infinitely large keys that never move: pairs with such
// an index are skipped, and no padding is needed. Steps within blocks of 2 * GROUP are fused in local memory.
// skipped, and nothing needs padding. Steps within blocks of 2 * GROUP run fused in local memory.
#include "common/real.clh"

#ifndef GROUP
#error "GROUP: work-items in a work-group, a power of two"
#endif
#define BLOCK (2 * GROUP)

// The two indices compared by comparator c: mirrored in its span, or a fixed distance apart.
#define MIRRORED_LOW(c, span) ((c) / ((span) / 2) * (span) + (c) % ((span) / 2))
#define MIRRORED_HIGH(c, span) ((c) / ((span) / 2) * (span) + (span) - 1 - (c) % ((span) / 2))
#define APART_LOW(c, distance) ((c) / (distance) * 2 * (distance) + (c) % (distance))

#define ORDER_LOCAL(low, high) \
    if (block[low] > block[high]) { \
        const ulong larger = block[low]; \
        block[low] = block[high]; \
        block[high] = larger; \
    }

kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void sort_blocks(const int n, global ulong *restrict keys) {
    local ulong block[BLOCK];
    const int item = get_local_id(0), start = BLOCK * get_group_id(0);
    for (int k = item; k < BLOCK; k += GROUP) block[k] = start + k < n ? keys[start + k] : ULONG_MAX;
    for (int span = 2; span <= BLOCK; span *= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        ORDER_LOCAL(MIRRORED_LOW(item, span), MIRRORED_HIGH(item, span))
        for (int distance = span / 4; distance > 0; distance /= 2) {
            barrier(CLK_LOCAL_MEM_FENCE);
            ORDER_LOCAL(APART_LOW(item, distance), APART_LOW(item, distance) + distance)
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = item; k < BLOCK; k += GROUP)
        if (start + k < n) keys[start + k] = block[k];
}

// One step of a merge across blocks; distance 0: the mirrored first step of a span.
kernel void merge_step(const int n, const int span, const int distance, global ulong *restrict keys) {
    const int c = get_global_id(0);
    const int low = distance ? APART_LOW(c, distance) : MIRRORED_LOW(c, span);
    const int high = distance ? low + distance : MIRRORED_HIGH(c, span);
    if (high >= n || low >= n) return;
    const ulong smaller = keys[low], larger = keys[high];
    if (smaller > larger) {
        keys[low] = larger;
        keys[high] = smaller;
    }
}

// All steps of a merge within a block, in local memory.
kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void merge_blocks(const int n, global ulong *restrict keys) {
    local ulong block[BLOCK];
    const int item = get_local_id(0), start = BLOCK * get_group_id(0);
    for (int k = item; k < BLOCK; k += GROUP) block[k] = start + k < n ? keys[start + k] : ULONG_MAX;
    for (int distance = GROUP; distance > 0; distance /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        ORDER_LOCAL(APART_LOW(item, distance), APART_LOW(item, distance) + distance)
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = item; k < BLOCK; k += GROUP)
        if (start + k < n) keys[start + k] = block[k];
}
