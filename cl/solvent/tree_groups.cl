// HCT sums over a tree of boxes, for GPUs: as in solvent/tree.cl, but all work-items of a group cooperate.
//
// A work-group owns OWN tiles, and each work-item an atom of each tile, so that a load is reused for all of them. The
// group tests as many boxes at a time as it has work-items. It lists far boxes, boxes whose atoms use the series and
// boxes whose atoms are near. A full list is processed: atoms are loaded into local memory, and each work-item sums
// over all of them. For far boxes, each work-item keeps the moments of one box in registers and loops over the group's
// atoms, since loading the many moments from local memory would take longer than the sums. The order of the lists
// depends only on the boxes, so results are bitwise reproducible.
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
#error "MOST_OPEN: boxes that may wait to be looked at: trunks, a look's of each level, and two looks'"
#endif
#define LEAVES (2 * TILE / LEAF)  // leaves whose atoms are in local memory at a time
#define LISTED (2 * TILE)         // a list is processed as soon as it has TILE boxes or LEAVES; a test adds at most TILE

// Atoms of the group: positions relative to the first tile's origin [A].
typedef struct {
    real x[OWN], y[OWN], z[OWN], rho[OWN], total[OWN], lost[OWN];
#if NECK
    NeckRow necks[OWN];
#endif
} Own;

typedef struct {
    int open[MOST_OPEN], listed[LISTS][LISTED], scratch[TILE];
    real4 shifts[LISTED];      // from the centres of far boxes
    real4 own[OWN * TILE];     // positions of the group's atoms
    real taken[OWN * TILE];    // contributions of far boxes
    real4 met[LEAVES * LEAF];  // x, y, z, scaled radius
#if NECK
    real2 kinds[LEAVES * LEAF];  // offset radius and kind
#endif
} Memory;

typedef struct { int totals[LISTS + 1], before[LISTS + 1]; } Counts;

// Number of the group's work-items with each kind, and how many precede this one; the last kind counts children.
INLINE void count_kinds(Counts *counts, int kind, int children, local int *scratch) {
    const int lane = get_local_id(0);
    // One byte per kind: at most 2 TILE of each.
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

// Adds up to TILE far boxes from `first` on. moments: of the conformation's boxes
INLINE void add_far_boxes(Own *own, local Memory *memory, int first, int count, global const real4 *moments) {
    const int lane = get_local_id(0), listed = first + min(lane, count - 1);
    const real4 from = memory->shifts[listed];
    global const real4 *m = moments + MOMENTS * memory->listed[FAR_BOX][listed];
    const real4 m0 = m[0], m1 = m[1], m2 = m[2], m3 = m[3], m4 = m[4], m5 = m[5], m6 = m[6], m7 = m[7], m8 = m[8];
    #pragma unroll
    for (int v = 0; v < OWN; ++v) memory->taken[v * TILE + lane] = 0;
    for (int step = 0; step < TILE; ++step) {
        const int other = (lane + step) % TILE;
        barrier(CLK_LOCAL_MEM_FENCE);
        #pragma unroll
        for (int v = 0; v < OWN; ++v) {
            const real4 atom = memory->own[v * TILE + other];
            const real term = far_box_of(
                atom.x + from.x, atom.y + from.y, atom.z + from.z, m0, m1, m2, m3, m4, m5, m6, m7, m8);
            memory->taken[v * TILE + other] += lane < count ? term : (real)0;
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    #pragma unroll
    for (int v = 0; v < OWN; ++v) add_compensated(own->total + v, own->lost + v, memory->taken[v * TILE + lane]);
}

// Adds the atoms of `count` leaves, which are in local memory.
INLINE void add_leaves(Own *own, local Memory *memory, const int list, int count, const Reaches *reaches) {
    real sum[OWN];
    #pragma unroll
    for (int v = 0; v < OWN; ++v) sum[v] = 0;
    for (int j = 0; j < count * LEAF; ++j) {
        const real4 atom = memory->met[j];
        const real s2 = atom.w * atom.w, s3 = s2 * atom.w;
        #pragma unroll
        for (int v = 0; v < OWN; ++v) {
            const real dx = own->x[v] - atom.x, dy = own->y[v] - atom.y, dz = own->z[v] - atom.z;
            const real r2 = dx * dx + dy * dy + dz * dz;
            if (list == SERIES_LEAF) sum[v] += hct_series(inverse(r2), s2, s3, TERMS_A);
            else {
                sum[v] += near_term(r2, own->rho[v], atom.w, reaches);
#if NECK
                sum[v] += neck_term(own->necks + v, r2, own->rho[v], memory->kinds[j].x, (int)memory->kinds[j].y, reaches);
#endif
            }
        }
    }
    #pragma unroll
    for (int v = 0; v < OWN; ++v) add_compensated(own->total + v, own->lost + v, sum[v]);
}

kernel __attribute__((reqd_work_group_size(TILE, 1, 1)))
void born_sums_tree_groups(
    TREE_PARAMETERS)
{
    local Memory memory;
    const int lane = get_local_id(0), walk = get_global_id(1), conformation = get_global_id(2);
    // From the global id: a long launch is split, and group ids restart at 0 in each part.
    const int first_tile = get_global_id(0) / TILE * OWN, n_slots = n_tiles * TILE;
    const size_t at = (size_t)conformation * n_slots, tiles = (size_t)conformation * n_tiles;
    const size_t boxes = (size_t)conformation * n_boxes;
    // Positions are relative to the first tile's origin; an incomplete last group repeats the last tile.
#define OWN_TILE(v) min(first_tile + (v), n_tiles - 1)
    const real4 own_origin = origins[tiles + first_tile];
    real4 lowest = -extents[tiles + first_tile], highest = extents[tiles + first_tile];
    const Necks of_necks = NECKS_GIVEN;
    Own own;
    #pragma unroll
    for (int v = 0; v < OWN; ++v) {
        const int tile = OWN_TILE(v);
        const real4 atom = atoms[at + tile * TILE + lane], from = origins[tiles + tile] - own_origin, place = atom + from;
        own.x[v] = place.x;
        own.y[v] = place.y;
        own.z[v] = place.z;
        own.rho[v] = rho[tile * TILE + lane];
        own.total[v] = own.lost[v] = 0;
        memory.own[v * TILE + lane] = place;
#if NECK
        own.necks[v] = neck_row(n_slots, tile * TILE + lane, &of_necks);
#endif
        lowest = fmin(lowest, from - extents[tiles + tile]);
        highest = fmax(highest, from + extents[tiles + tile]);
    }
    const real4 own_middle = (real)0.5 * (lowest + highest), own_extent = highest - own_middle;
    // A box on the stack is encoded as its index in its level, times 32, plus its level.
    const int first = first_trunk(walk, trunk_level, levels);
    int n_open = first_trunk(walk + 1, trunk_level, levels) - first, n_listed[LISTS] = {0, 0, 0};
    for (int k = lane; k < n_open; k += TILE) memory.open[k] = (first + k) << 5 | trunk_level;
    while (true) {
        barrier(CLK_LOCAL_MEM_FENCE);
        const int looks = min(n_open, TILE);
        n_open -= looks;
        int kind = PASSED, children = 0, level = 0, k = 0, box = 0;
        real4 shift = 0;
        if (lane < looks) {
            const int entry = memory.open[n_open + lane];
            level = entry & 31;
            k = entry >> 5;
            box = levels[level] + k;
            global const real4 *own_box = middles + MIDDLES * (boxes + box);
            shift = (own_origin - own_box[0]) - own_box[1];
            kind = kind_of_box(shift + own_middle, own_extent, own_box, level, tolerance, &reaches);
            if (kind == OPENED) children = levels[level - 1] + 2 * k + 1 < levels[level] ? 2 : 1;
        }
        Counts c;
        count_kinds(&c, kind, children, memory.scratch);
        if (kind < LISTS) memory.listed[kind][n_listed[kind] + c.before[kind]] = kind == FAR_BOX ? box : k;
        if (kind == FAR_BOX) memory.shifts[n_listed[FAR_BOX] + c.before[FAR_BOX]] = shift;
        for (int child = 0; child < children; ++child)
            memory.open[n_open + c.before[LISTS] + child] = (2 * k + child) << 5 | (level - 1);
        n_open += c.totals[LISTS];
        for (int list = 0; list < LISTS; ++list) n_listed[list] += c.totals[list];
        const bool is_last = n_open == 0;
        barrier(CLK_LOCAL_MEM_FENCE);

        while (n_listed[FAR_BOX] >= TILE || (is_last && n_listed[FAR_BOX] > 0)) {
            const int count = min(n_listed[FAR_BOX], TILE);
            n_listed[FAR_BOX] -= count;
            add_far_boxes(&own, &memory, n_listed[FAR_BOX], count, moments + MOMENTS * boxes);
        }
        #pragma unroll
        for (int list = SERIES_LEAF; list <= NEAR_LEAF; ++list) {
            while (n_listed[list] >= LEAVES || (is_last && n_listed[list] > 0)) {
                const int count = min(n_listed[list], LEAVES);
                n_listed[list] -= count;
                barrier(CLK_LOCAL_MEM_FENCE);
                for (int j = lane; j < count * LEAF; j += TILE) {
                    const int slot = memory.listed[list][n_listed[list] + j / LEAF] * LEAF + j % LEAF;
                    const real4 from = origins[tiles + slot / TILE] - own_origin;
                    memory.met[j] = atoms[at + slot] + (real4)(from.x, from.y, from.z, 0);
#if NECK
                    memory.kinds[j] = (real2)(rho[slot], kinds[slot]);
#endif
                }
                barrier(CLK_LOCAL_MEM_FENCE);
                add_leaves(&own, &memory, list, count, &reaches);
            }
        }
        if (is_last) break;
    }
    global real *own_sums = sums + ((size_t)conformation * get_global_size(1) + walk) * n_slots;
    #pragma unroll
    for (int v = 0; v < OWN; ++v) own_sums[OWN_TILE(v) * TILE + lane] = own.total[v] + own.lost[v];
}
