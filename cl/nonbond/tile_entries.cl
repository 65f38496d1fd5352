// Entries of each tile of TILE atoms, from a pair list. An entry is another atom with the lanes that it interacts with.
//
// A pair of atoms in two tiles may belong to either tile: as an entry of one atom with the other tile, or vice versa.
// So the entries of two tiles are a set of atoms of both that covers all their pairs; a smaller set needs fewer
// vectors.
#include "common/real.clh"
#include "shared/one_four"

#define SLOT(key) ((key) & ~ONE_FOUR)

#ifndef TILE
#error "TILE: atoms of a tile: 8, or WIDTH where that is less"
#endif
#define OTHERS (WIDTH / TILE)  // other atoms per entry
#ifndef ENTRIES
#error "ENTRIES: entries are padded to multiples of this"
#endif
#ifndef OWN_VALUES
#error "OWN_VALUES: 1 where the list brings sigma^2 and charge product of each pair, else 0"
#endif

// Pairs by slot: a tile has the slots from TILE * tile to TILE * (tile + 1), exclusive.
kernel void place_pairs(
    const int n_pairs,
    global const int *restrict slot_of,   // (n_atoms)
    global const uint2 *restrict pairs,   // (n_pairs) first atom, second atom with its ONE_FOUR bit
    global uint2 *restrict placed)        // (n_pairs) the same with slots for atoms
{
    const int p = get_global_id(0);
    if (p >= n_pairs) return;
    placed[p].x = slot_of[pairs[p].x];
    placed[p].y = slot_of[SLOT(pairs[p].y)] | (pairs[p].y & ONE_FOUR);
}

// Index of the first of the sorted keys from begin to end that is not less than `key`, or end.
INLINE int lower_bound(global const uint *keys, int begin, int end, uint key) {
    while (begin < end) {
        const int middle = begin + (end - begin) / 2;
        if (keys[middle] < key) begin = middle + 1;
        else end = middle;
    }
    return begin;
}

// Atoms of two tiles, bits 0 to 2 TILE - 1, that cover all their pairs, by the greedy algorithm: the atom with the most
// uncovered pairs is taken next. The result is within a few per cent of the minimum.
INLINE uint cover(uint *linked) {
    for (uint covering = 0;;) {
        int best = 0;
        for (int v = 1; v < 2 * TILE; ++v)
            if (popcount(linked[v]) > popcount(linked[best])) best = v;
        if (linked[best] == 0) return covering;
        covering |= 1u << best;
        linked[best] = 0;
        for (int v = 0; v < 2 * TILE; ++v) linked[v] &= ~(1u << best);
    }
}

INLINE uint own_slot(uint2 pair, uint slot) { return pair.x == slot ? SLOT(pair.y) : pair.x; }

// For each atom of another tile, finds the lanes of `tile` whose pairs with it belong to `tile`, from the neighbours of
// `tile` in the other tile, from begin to end. Computed from the other tile, the result is consistent.
INLINE void find_lanes(
    int tile, int other, global const uint *neighbours, global const int *pair_of, global const uint2 *placed, int begin,
    int end, uint *lanes) {
    // Which tile leads in ties alternates, to balance the entries.
    const bool leads = ((tile + other) & 1) ? tile < other : tile > other;
    const uint here = leads ? 0 : TILE, there = TILE - here;
    uint linked[2 * TILE];
    for (int v = 0; v < 2 * TILE; ++v) linked[v] = 0;
    for (int lane = 0; lane < TILE; ++lane) lanes[lane] = 0;
    for (int k = begin; k < end; ++k) {
        const uint slot = SLOT(neighbours[k]), own = own_slot(placed[pair_of[k]], slot) % TILE, lane = slot % TILE;
        if (tile == other && own > lane) continue;  // the same pair is visited from its other atom
        lanes[lane] |= 1u << own;
        linked[here + own] |= 1u << (there + lane);
        linked[there + lane] |= 1u << (here + own);
    }
    if (tile == other) return;
    const uint covering = cover(linked), of_here = (covering >> here) & ((1u << TILE) - 1);
    for (int lane = 0; lane < TILE; ++lane) {
        if (!(covering >> (there + lane) & 1)) lanes[lane] = 0;
        else if (!leads) lanes[lane] &= ~of_here;  // pairs covered twice belong to the leading tile
    }
}

// Writes another atom with its lanes at index `at` of the list.
INLINE void write_other(global uint *entries, int at, uint2 other) {
    global uint *entry = entries + (OTHERS + 1) * (at / OTHERS);
    const int o = at % OTHERS;
    entry[o] = other.x;
    entry[OTHERS] = (o ? entry[OTHERS] : 0u) | other.y << (TILE * o);
}

// Runs twice: to count entries, and to write them after the counts have become offsets. Segment 2 * tile contains the
// plain pairs of the tile, the next one its 1-4 pairs.
kernel void tile_entries(
    const int n_tiles,
    const int writing,
    global const int *restrict starts,        // (n_tiles + 1) index of each tile's first neighbour
    global const uint *restrict neighbours,   // (2 n_pairs) slot of the other atom with its ONE_FOUR bit, sorted
    global const int *restrict pair_of,       // (2 n_pairs) pair of each neighbour
    global const uint2 *restrict placed,      // (n_pairs) by slot
    global int *restrict offsets,             // (2 n_tiles + 1) output: number of entries; input: their offsets
    global uint *restrict entries             // (n_entries, OTHERS + 1) slots of other atoms, bit mask of lanes
#if OWN_VALUES
    , global const real *restrict sigma2      // (n_pairs) [A^2]
    , global const real *restrict charges     // (n_pairs)
    , global real *restrict lane_sigma2       // (n_entries, WIDTH), initially zero
    , global real *restrict lane_charges      // (n_entries, WIDTH), initially zero
#endif
) {
    const int segment = get_global_id(0), tile = segment / 2;
    if (tile >= n_tiles) return;
    const uint mark = segment % 2 ? ONE_FOUR : 0u;
    const int middle = lower_bound(neighbours, starts[tile], starts[tile + 1], ONE_FOUR);
    const int end = mark ? starts[tile + 1] : middle;
    const int start = writing ? OTHERS * offsets[segment] : 0;
    int at = start;  // number of other atoms so far
    uint2 last = (uint2)(0, 0);
    for (int k = mark ? middle : starts[tile]; k < end;) {
        const int other = SLOT(neighbours[k]) / TILE;
        const int block_end = lower_bound(neighbours, k, end, mark | (uint)(TILE * (other + 1)));
        uint lanes[TILE];
        find_lanes(tile, other, neighbours, pair_of, placed, k, block_end, lanes);
        while (k < block_end) {
            const uint key = neighbours[k], slot = SLOT(key);
            const uint2 here = (uint2)(slot, lanes[slot % TILE]);
            for (; k < block_end && neighbours[k] == key; ++k) {
#if OWN_VALUES
                const uint lane = own_slot(placed[pair_of[k]], slot) % TILE;
                if (writing && (here.y >> lane & 1)) {
                    lane_sigma2[at * TILE + lane] = sigma2[pair_of[k]];
                    lane_charges[at * TILE + lane] = charges[pair_of[k]];
                }
#endif
            }
            if (here.y == 0) continue;
            if (writing) write_other(entries, at, here);
            last = here;
            ++at;
        }
    }
    last.y = 0;
    for (; (at - start) % (OTHERS * ENTRIES) != 0; ++at)
        if (writing) write_other(entries, at, last);
    if (!writing) offsets[segment] = at / OTHERS;
}
