// What each tile of WIDTH atoms computes of a pair list: its entries, each another atom with the lanes it pairs with.
//
// A pair of atoms of two tiles may stand with either tile. All pairs between two tiles stand with the one to whose atoms
// they bring fewer entries: fuller lanes, fewer vectors to compute.
#include "real.clh"

#define ONE_FOUR 0x80000000u
#define PLACE(key) ((key) & ~ONE_FOUR)

#ifndef ENTRIES
#error "ENTRIES: entries are padded to multiples of this"
#endif
#ifndef OWN_VALUES
#error "OWN_VALUES: 1 where the list brings sigma^2 and charge product of each pair, else 0"
#endif

// Pairs by place: tiles own places WIDTH * tile to WIDTH * (tile + 1).
kernel void place_pairs(
    const int n_pairs,
    global const int *restrict place_of,  // (n_atoms)
    global const uint2 *restrict pairs,   // (n_pairs) first atom, second atom with its ONE_FOUR bit
    global uint2 *restrict placed)        // (n_pairs) the same with places for atoms
{
    const int p = get_global_id(0);
    if (p >= n_pairs) return;
    placed[p].x = place_of[pairs[p].x];
    placed[p].y = place_of[PLACE(pairs[p].y)] | (pairs[p].y & ONE_FOUR);
}

// First of the sorted keys from begin to end that is not below `key`, or end.
INLINE int lower_bound(global const uint *keys, int begin, int end, uint key) {
    while (begin < end) {
        const int middle = begin + (end - begin) / 2;
        if (keys[middle] < key) begin = middle + 1;
        else end = middle;
    }
    return begin;
}

INLINE int distinct(global const uint *keys, int begin, int end) {
    int n = 0;
    for (int k = begin; k < end; ++k) n += k == begin || keys[k] != keys[k - 1];
    return n;
}

// Whether the pairs of two tiles, places begin to end of `tile`'s row, stand with `tile`.
INLINE bool stands_with(
    int tile, int other, uint mark, global const int *rows, global const uint *neighbours, int begin, int end) {
    if (tile == other) return true;
    const uint first = mark | (uint)(WIDTH * tile);
    const int back = lower_bound(neighbours, rows[other], rows[other + 1], first);
    const int back_end = lower_bound(neighbours, back, rows[other + 1], first + WIDTH);
    const int here = distinct(neighbours, begin, end), there = distinct(neighbours, back, back_end);
    // Where it is all the same, tiles take turns, so that each gets its share.
    return here < there || (here == there && (((tile + other) & 1) ? tile < other : tile > other));
}

// Once to count entries, and once, when the counts have become offsets, to write them. Segment 2 * tile holds the tile's
// plain pairs, the next one its 1-4 pairs.
kernel void tile_entries(
    const int n_tiles,
    const int writing,
    global const int *restrict rows,          // (n_tiles + 1) where each tile's row begins
    global const uint *restrict neighbours,   // (2 n_pairs) rows: place of the other atom with its ONE_FOUR bit, sorted
    global const int *restrict pair_of,       // (2 n_pairs) rows: the pair
    global const uint2 *restrict placed,      // (n_pairs) by place
    global int *restrict offsets,             // (2 n_tiles + 1) number of entries out, or where they begin in
    global uint2 *restrict entries            // (n_entries) place of the other atom, bit mask of lanes
#if OWN_VALUES
    , global const real *restrict sigma2      // (n_pairs) [A^2]
    , global const real *restrict charges     // (n_pairs)
    , global real *restrict lane_sigma2       // (n_entries, WIDTH), zero before
    , global real *restrict lane_charges      // (n_entries, WIDTH), zero before
#endif
) {
    const int segment = get_global_id(0), tile = segment / 2;
    if (tile >= n_tiles) return;
    const uint mark = segment % 2 ? ONE_FOUR : 0u;
    const int middle = lower_bound(neighbours, rows[tile], rows[tile + 1], ONE_FOUR);
    const int end = mark ? rows[tile + 1] : middle;
    const int start = writing ? offsets[segment] : 0;
    int entry = start;
    uint2 last = (uint2)(0, 0);
    for (int k = mark ? middle : rows[tile]; k < end;) {
        const int other = PLACE(neighbours[k]) / WIDTH;
        const int block_end = lower_bound(neighbours, k, end, mark | (uint)(WIDTH * (other + 1)));
        if (!stands_with(tile, other, mark, rows, neighbours, k, block_end)) {
            k = block_end;
            continue;
        }
        while (k < block_end) {
            const uint key = neighbours[k], place = PLACE(key);
            last = (uint2)(place, 0);
            for (; k < block_end && neighbours[k] == key; ++k) {
                const uint2 pair = placed[pair_of[k]];
                const uint own = pair.x == place ? PLACE(pair.y) : pair.x;
                if (tile == other && own > place) continue;  // the same pair comes by from its other atom
                last.y |= 1u << (own % WIDTH);
#if OWN_VALUES
                if (writing) {
                    lane_sigma2[entry * WIDTH + own % WIDTH] = sigma2[pair_of[k]];
                    lane_charges[entry * WIDTH + own % WIDTH] = charges[pair_of[k]];
                }
#endif
            }
            if (last.y == 0) continue;
            if (writing) entries[entry] = last;
            ++entry;
        }
    }
    last.y = 0;
    for (; (entry - start) % ENTRIES != 0; ++entry)
        if (writing) entries[entry] = last;
    if (!writing) offsets[segment] = entry;
}
