// Index of the pairs of each atom: counts, index lists and neighbour lists, from a pair list in any order.
//
// Lists are segments of 64-bit keys, one segment per atom or per tile of atoms, located by an exclusive prefix sum of
// the counts. Work-items fill a segment in arbitrary order, so each segment is sorted afterwards, and equal lists give
// bitwise equal indices.
#include "common/real.clh"
#include "shared/one_four"
#include "shared/role"

#define ATOM(entry) (int)((entry) & ~ONE_FOUR)
#define KEY(high, low) (((ulong)(high) << 32) | (uint)(low))

kernel void count_pairs(
    const int n_pairs,
    const int role,                       // FIRSTS, SECONDS or BOTH
    const int tile,                       // atoms per segment
    global const uint2 *restrict pairs,   // (n_pairs) first atom, second atom with its ONE_FOUR bit
    global int *restrict counts)          // (n_segments + 1), initially zero
{
    const int p = get_global_id(0);
    if (p >= n_pairs) return;
    if (role != SECONDS) atomic_inc(counts + pairs[p].x / tile);
    if (role != FIRSTS) atomic_inc(counts + ATOM(pairs[p].y) / tile);
}

kernel void fill_segments(
    const int n_pairs,
    const int role,
    const int tile,
    global const uint2 *restrict pairs,   // (n_pairs)
    global const int *restrict offsets,   // (n_segments + 1)
    global int *restrict taken,           // (n_segments), initially zero
    global ulong *restrict keys)          // (n_pairs; BOTH: twice as many) BOTH: neighbour, pair; else 0, pair
{
    const int p = get_global_id(0);
    if (p >= n_pairs) return;
    const uint i = pairs[p].x, j = ATOM(pairs[p].y), mark = pairs[p].y & ONE_FOUR;
    if (role != SECONDS) keys[offsets[i / tile] + atomic_inc(taken + i / tile)] = KEY(role == BOTH ? j | mark : 0u, p);
    if (role != FIRSTS) keys[offsets[j / tile] + atomic_inc(taken + j / tile)] = KEY(role == BOTH ? i | mark : 0u, p);
}

// Heap sort of each segment, in place: a few hundred keys, but any number is allowed.
kernel void sort_segments(const int n_segments, global const int *restrict offsets, global ulong *restrict keys) {
    const int i = get_global_id(0);
    if (i >= n_segments) return;
    global ulong *heap = keys + offsets[i];
    int size = offsets[i + 1] - offsets[i];
    int next = size / 2;
    while (size > 1) {
        ulong moving;
        if (next > 0) {
            moving = heap[--next];  // build the heap
        } else {
            moving = heap[--size];  // remove the largest
            heap[size] = heap[0];
        }
        int hole = next;
        for (int child = 2 * hole + 1; child < size; child = 2 * hole + 1) {
            if (child + 1 < size && heap[child + 1] > heap[child]) ++child;
            if (heap[child] <= moving) break;
            heap[hole] = heap[child];
            hole = child;
        }
        heap[hole] = moving;
    }
}

kernel void split_keys(
    const int n,
    global const ulong *restrict keys,  // (n)
    global uint *restrict high,         // (n) neighbours
    global int *restrict low)           // (n) pairs
{
    const int k = get_global_id(0);
    if (k >= n) return;
    high[k] = (uint)(keys[k] >> 32);
    low[k] = (int)(uint)keys[k];
}

// Sort keys: the atom of each pair in the high word, the index of the pair in the low one.
kernel void make_keys(const int n_pairs, const int role, global const uint2 *restrict pairs, global ulong *restrict keys) {
    const int p = get_global_id(0);
    if (p < n_pairs) keys[p] = KEY(role == FIRSTS ? pairs[p].x : (uint)ATOM(pairs[p].y), p);
}

// Index of each atom's segment in the sorted keys: each work-item compares its key with the previous one.
kernel void find_offsets(
    const int n_pairs,
    const int n_atoms,
    global const ulong *restrict keys,  // (n_pairs) sorted
    global int *restrict offsets)       // (n_atoms + 1)
{
    const int k = get_global_id(0);
    if (k > n_pairs) return;
    const int before = k == 0 ? -1 : (int)(keys[k - 1] >> 32);
    const int here = k == n_pairs ? n_atoms : (int)(keys[k] >> 32);
    for (int atom = before + 1; atom <= here; ++atom) offsets[atom] = k;
}

// Pairs and their values, in the order of the sorted keys.
kernel void permute_pairs(
    const int n_pairs,
    global const int *restrict order,     // (n_pairs) pair at each index
    global const uint2 *restrict pairs,   // (n_pairs)
    global uint2 *restrict permuted)      // (n_pairs)
{
    const int k = get_global_id(0);
    if (k < n_pairs) permuted[k] = pairs[order[k]];
}

kernel void permute_reals(
    const int n_pairs,
    global const int *restrict order,     // (n_pairs)
    global const real *restrict values,   // (n_pairs)
    global real *restrict permuted)       // (n_pairs)
{
    const int k = get_global_id(0);
    if (k < n_pairs) permuted[k] = values[order[k]];
}
