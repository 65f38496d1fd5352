// HCT sums over a tree of boxes, for GPUs: what solvent/tree.cl does, with the work-items of a group as one.
//
// A work-group owns OWN tiles, a work-item an atom of each: what is loaded serves all of them. The group looks at as many
// boxes at a time as it has work-items, each at one, and lists those that are far, those whose atoms take the series and
// those whose atoms are near. A list that is full is worked off: the group brings it to local memory, and each work-item
// sums over all of it.
// The order of the lists follows from the boxes alone, so the bits are the same every run.
#include "common/real.clh"
#include "physics/hct.clh"
#include "common/sums.clh"
#include "common/tiles.clh"
#define ROW 1
#include "solvent/hct_rows.clh"
#include "solvent/tree.clh"
#include "solvent/far_box.clh"

#ifndef OWN
#error "OWN: tiles of a group"
#endif
#ifndef MOST_OPEN
#error "MOST_OPEN: boxes that may wait to be looked at: a look's of each level, and two looks'"
#endif
#if NECK
#define HAS_NECKS 1
#else
#define HAS_NECKS 0
#endif
#define LISTED (2 * TILE) // a list is worked off as soon as it has TILE boxes, and a look adds as many at most
#define LEAVES (TILE / LEAF)
#define AT_ONCE 4         // far boxes in local memory

typedef struct { int totals[LISTS + 1], before[LISTS + 1]; } Counts;

// How many of the group's work-items have each kind, and how many before this one; the last kind counts twice.
INLINE void count_kinds(Counts *counts, int kind, int children, local int *scratch) {
    const int lane = get_local_id(0);
    // A byte a kind: at most 2 TILE of any.
    int own = kind < LISTS ? 1 << (8 * kind) : children << (8 * LISTS);
    barrier(CLK_LOCAL_MEM_FENCE);
    scratch[lane] = own;
    int sum = own;
    for (int step = 1; step < TILE; step *= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        const int other = lane >= step ? scratch[lane - step] : 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        sum += other;
        scratch[lane] = sum;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const int all = scratch[TILE - 1], before = sum - own;
    for (int k = 0; k <= LISTS; ++k) {
        counts->totals[k] = (all >> (8 * k)) & 255;
        counts->before[k] = (before >> (8 * k)) & 255;
    }
}

kernel __attribute__((reqd_work_group_size(TILE, 1, 1)))
void born_sums_tree_groups(
    TREE_ARGUMENTS(restrict))
{
    local int open[MOST_OPEN], listed[LISTS][LISTED], scratch[TILE];
    local real4 shifts[LISTED], staged[2 * TILE];
    const int lane = get_local_id(0), trunk = get_global_id(1), conformation = get_global_id(2);
    // From the global number: a long launch comes in pieces, in each of which the groups are numbered anew.
    const int first_tile = get_global_id(0) / TILE * OWN, n_slots = n_tiles * TILE;
    const size_t at = (size_t)conformation * n_slots, tiles = (size_t)conformation * n_tiles;
    const size_t boxes = (size_t)conformation * n_boxes;
    // Positions count from the first tile's origin; the last group repeats the last tile where tiles are wanting.
#define OWN_TILE(v) min(first_tile + (v), n_tiles - 1)
    const real4 own_origin = origins[tiles + first_tile];
    real4 lowest = -extents[tiles + first_tile], highest = extents[tiles + first_tile];
    real x[OWN], y[OWN], z[OWN], own_rho[OWN], total[OWN], lost[OWN], sum[OWN];
#if NECK
    NeckRow necks_of[OWN];
#endif
    #pragma unroll
    for (int v = 0; v < OWN; ++v) {
        const int tile = OWN_TILE(v);
        const real4 atom = atoms[at + tile * TILE + lane], from = origins[tiles + tile] - own_origin;
        x[v] = atom.x + from.x;
        y[v] = atom.y + from.y;
        z[v] = atom.z + from.z;
        own_rho[v] = rho[tile * TILE + lane];
        total[v] = lost[v] = 0;
#if NECK
        necks_of[v] = neck_row(n_slots, tile * TILE + lane, OF_NECKS);
#endif
        lowest = fmin(lowest, from - extents[tiles + tile]);
        highest = fmax(highest, from + extents[tiles + tile]);
    }
    const real4 own_middle = (real)0.5 * (lowest + highest), own_extent = highest - own_middle;
    int n_open = 1, n_listed[LISTS] = {0, 0, 0};
    // A box on the stack is its number in its level, times 32, plus its level.
    if (lane == 0) open[0] = trunk << 5 | trunk_level;
    while (true) {
        barrier(CLK_LOCAL_MEM_FENCE);
        const int looks = min(n_open, TILE);
        n_open -= looks;
        int kind = PASSED, children = 0, level = 0, k = 0, box = 0;
        real4 shift = 0;
        if (lane < looks) {
            const int entry = open[n_open + lane];
            level = entry & 31;
            k = entry >> 5;
            box = levels[level] + k;
            global const real4 *own_box = middles + MIDDLES * (boxes + box);
            shift = (own_origin - own_box[0]) - own_box[1];
            kind = kind_of_box(shift + own_middle, own_extent, own_box, level, tolerance, &reaches);
            if (kind == OPENED) children = levels[level - 1] + 2 * k + 1 < levels[level] ? 2 : 1;
        }
        Counts c;
        count_kinds(&c, kind, children, scratch);
        if (kind < LISTS) listed[kind][n_listed[kind] + c.before[kind]] = kind == FAR_BOX ? box : k;
        if (kind == FAR_BOX) shifts[n_listed[FAR_BOX] + c.before[FAR_BOX]] = shift;
        for (int child = 0; child < children; ++child)
            open[n_open + c.before[LISTS] + child] = (2 * k + child) << 5 | (level - 1);
        n_open += c.totals[LISTS];
        for (int list = 0; list < LISTS; ++list) n_listed[list] += c.totals[list];
        const bool is_last = n_open == 0;
        barrier(CLK_LOCAL_MEM_FENCE);

        while (n_listed[FAR_BOX] >= TILE || (is_last && n_listed[FAR_BOX] > 0)) {
            const int count = min(n_listed[FAR_BOX], TILE);
            n_listed[FAR_BOX] -= count;
            const int first = n_listed[FAR_BOX];
            #pragma unroll
            for (int v = 0; v < OWN; ++v) sum[v] = 0;
            for (int start = 0; start < count; start += AT_ONCE) {
                barrier(CLK_LOCAL_MEM_FENCE);
                for (int m = lane; m < AT_ONCE * MOMENTS; m += TILE)
                    if (start + m / MOMENTS < count)
                        staged[m] = moments[MOMENTS * (boxes + listed[FAR_BOX][first + start + m / MOMENTS]) + m % MOMENTS];
                barrier(CLK_LOCAL_MEM_FENCE);
                for (int b = 0; b < min(AT_ONCE, count - start); ++b) {
                    const real4 from = shifts[first + start + b];
                    local const real4 *m = staged + MOMENTS * b;
                    const real4 m0 = m[0], m1 = m[1], m2 = m[2], m3 = m[3], m4 = m[4], m5 = m[5], m6 = m[6], m7 = m[7];
                    #pragma unroll
                    for (int v = 0; v < OWN; ++v)
                        sum[v] += far_box_of(x[v] + from.x, y[v] + from.y, z[v] + from.z, m0, m1, m2, m3, m4, m5, m6, m7);
                }
            }
            #pragma unroll
            for (int v = 0; v < OWN; ++v) add_compensated(total + v, lost + v, sum[v]);
        }
        #pragma unroll
        for (int list = SERIES_LEAF; list <= NEAR_LEAF; ++list) {
            while (n_listed[list] >= LEAVES || (is_last && n_listed[list] > 0)) {
                const int count = min(n_listed[list], LEAVES);
                n_listed[list] -= count;
                barrier(CLK_LOCAL_MEM_FENCE);
                if (lane < count * LEAF) {
                    const int slot = listed[list][n_listed[list] + lane / LEAF] * LEAF + lane % LEAF, other = slot / TILE;
                    const real4 atom = atoms[at + slot], from = origins[tiles + other] - own_origin;
                    staged[2 * lane] = (real4)(atom.x + from.x, atom.y + from.y, atom.z + from.z, atom.w);
                    if (list == SERIES_LEAF) {
                        const real4 b = series[2 * (at + slot)], d = series[2 * (at + slot) + 1];
                        staged[2 * lane + 1] = (real4)(b.y, b.z, b.w, d.x);
                    }
#if NECK
                    else staged[2 * lane + 1] = (real4)(rho[slot], kinds[slot], 0, 0);
#endif
                }
                barrier(CLK_LOCAL_MEM_FENCE);
                #pragma unroll
                for (int v = 0; v < OWN; ++v) sum[v] = 0;
                for (int j = 0; j < count * LEAF; ++j) {
                    const real4 atom = staged[2 * j];
                    real4 a = 0;
                    if (list == SERIES_LEAF || HAS_NECKS) a = staged[2 * j + 1];
                    #pragma unroll
                    for (int v = 0; v < OWN; ++v) {
                        const real dx = x[v] - atom.x, dy = y[v] - atom.y, dz = z[v] - atom.z;
                        const real r2 = dx * dx + dy * dy + dz * dz;
                        if (list == SERIES_LEAF) {
                            const real w = inverse(r2);
                            sum[v] += w * w * (a.x + w * (a.y + w * (a.z + w * a.w)));
                        } else {
                            sum[v] += near_term(r2, own_rho[v], atom.w, &reaches);
#if NECK
                            sum[v] += neck_term(necks_of + v, r2, own_rho[v], a.x, (int)a.y, &reaches);
#endif
                        }
                    }
                }
                #pragma unroll
                for (int v = 0; v < OWN; ++v) add_compensated(total + v, lost + v, sum[v]);
            }
        }
        if (is_last) break;
    }
    global real *own_sums = sums + ((size_t)conformation * get_global_size(1) + trunk) * n_slots;
    #pragma unroll
    for (int v = 0; v < OWN; ++v) own_sums[OWN_TILE(v) * TILE + lane] = total[v] + lost[v];
}
