// HCT sums over a tree of boxes: near atoms one by one, far boxes by their moments; docs/theory/tree.md.
//
// A work-group owns a tile, and each of its work-items a vector of WIDTH atoms; it traverses the tree from some of its
// trunks (second dimension), up to LOOKS boxes at a time. Boxes are classified for the tile as a whole. Third
// dimension: conformations.
#include "common/real.clh"
#include "physics/hct.clh"
#include "common/sums.clh"
#include "common/tiles.clh"
#define ROW 1
#include "solvent/hct_rows.clh"
#include "solvent/tree.clh"
#include "solvent/far_box.clh"

#ifndef VECTORS
#error "VECTORS: vectors of a tile that a work-item owns"
#endif
#ifndef MOST_OPEN
#error "MOST_OPEN: boxes that may wait to be looked at: trunks, LOOKS of each level, and twice as many"
#endif
#define ITEMS (TILE / WIDTH / VECTORS)
#define LOOKS 64  // boxes that are tested together, pele_ocl/solvent/tree_sums.py

// Adds a partial sum to the total and clears it: short sums preserve float32 accuracy.
INLINE void end_run(realv *part, realv *run) {
    #pragma unroll
    for (int v = 0; v < VECTORS; ++v) {
        part[v] += run[v];
        run[v] = 0;
    }
}

kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void born_sums_tree(
    TREE_PARAMETERS,
    global const real *restrict x,  // (n_conformations, n_slots) x, y, z of `atoms` as columns
    global const real *restrict y,
    global const real *restrict z)
{
    const int tile = get_global_id(0) / ITEMS, walk = get_global_id(1), conformation = get_global_id(2);
    const int within = get_local_id(0) * WIDTH * VECTORS, n_slots = n_tiles * TILE;
    const size_t at = (size_t)conformation * n_slots, tiles = (size_t)conformation * n_tiles;
    const size_t boxes = (size_t)conformation * n_boxes;
    const real4 own_origin = origins[tiles + tile], own_extent = extents[tiles + tile];
    realv own_x[VECTORS], own_y[VECTORS], own_z[VECTORS], own_rho[VECTORS];
    realv total[VECTORS], lost[VECTORS], part[VECTORS], run[VECTORS];
    #pragma unroll
    for (int v = 0; v < VECTORS; ++v) {
        const int i = tile * TILE + within + v * WIDTH;
        own_x[v] = LOAD(at + i, x);
        own_y[v] = LOAD(at + i, y);
        own_z[v] = LOAD(at + i, z);
        own_rho[v] = LOAD(i, rho);
        total[v] = lost[v] = part[v] = run[v] = 0;
    }
#if NECK
    const Necks of_necks = NECKS_GIVEN;
    NeckRow necks_of[VECTORS];
    #pragma unroll
    for (int v = 0; v < VECTORS; ++v) necks_of[v] = neck_row(n_slots, tile * TILE + within + v * WIDTH, &of_necks);
#endif
    int open[MOST_OPEN], listed[KINDS][LOOKS], n_open = 0;
    for (int k = first_trunk(walk, trunk_level, levels); k < first_trunk(walk + 1, trunk_level, levels); ++k)
        open[n_open++] = k << 5 | trunk_level;  // a box is encoded as its index in its level, times 32, plus its level
    while (n_open > 0) {
        // Branch-free, since the branch would be unpredictable.
        const int looks = min(n_open, LOOKS);
        int counts_of[KINDS] = {0};
        n_open -= looks;
        for (int look = 0; look < looks; ++look) {
            const int entry = open[n_open + look], level = entry & 31;
            global const real4 *box = middles + MIDDLES * (boxes + levels[level] + (entry >> 5));
            const real4 shift = (own_origin - box[0]) - box[1];
            const int kind = kind_of_box(shift, own_extent, box, level, tolerance, &reaches);
            listed[kind][counts_of[kind]++] = entry;
        }
        for (int look = 0; look < counts_of[OPENED]; ++look) {
            const int entry = listed[OPENED][look], level = entry & 31, k = entry >> 5;
            const int first = k << 6 | (level - 1);
            open[n_open] = first;
            open[n_open + 1] = first + 32;
            n_open += levels[level - 1] + 2 * k + 1 < levels[level] ? 2 : 1;
        }
        for (int look = 0; look < counts_of[FAR_BOX]; ++look) {
            const int entry = listed[FAR_BOX][look], box = levels[entry & 31] + (entry >> 5);
            global const real4 *middle = middles + MIDDLES * (boxes + box), *own_moments = moments + MOMENTS * (boxes + box);
            const real4 shift = (own_origin - middle[0]) - middle[1];
            #pragma unroll
            for (int v = 0; v < VECTORS; ++v)
                run[v] += far_box(own_x[v] + shift.x, own_y[v] + shift.y, own_z[v] + shift.z, own_moments);
            if ((look & 7) == 7) end_run(part, run);
        }
        for (int look = 0; look < counts_of[SERIES_LEAF]; ++look) {
            const int first = (listed[SERIES_LEAF][look] >> 5) * LEAF, other = first / TILE;
            const real4 from = own_origin - origins[tiles + other];
            for (int j = first; j < min(first + LEAF, other * TILE + counts[other]); ++j) {
                const real4 atom = atoms[at + j], b = series[2 * (at + j)], c = series[2 * (at + j) + 1];
                const real dx = from.x - atom.x, dy = from.y - atom.y, dz = from.z - atom.z;
                #pragma unroll
                for (int v = 0; v < VECTORS; ++v) {
                    const realv ax = own_x[v] + dx, ay = own_y[v] + dy, az = own_z[v] + dz;
                    const realv w = inverse(ax * ax + ay * ay + az * az);
                    run[v] += w * w * SERIES_SUM(w, TERMS_A, b.y, b.z, b.w, c.x, c.y, c.z, c.w);
                }
            }
            end_run(part, run);
        }
        for (int look = 0; look < counts_of[NEAR_LEAF]; ++look) {
            const int first = (listed[NEAR_LEAF][look] >> 5) * LEAF, other = first / TILE;
            const real4 from = own_origin - origins[tiles + other];
            for (int j = first; j < min(first + LEAF, other * TILE + counts[other]); ++j) {
                const real4 atom = atoms[at + j];
                const real dx = from.x - atom.x, dy = from.y - atom.y, dz = from.z - atom.z;
                #pragma unroll
                for (int v = 0; v < VECTORS; ++v) {
                    const realv ax = own_x[v] + dx, ay = own_y[v] + dy, az = own_z[v] + dz;
                    const realv r2 = ax * ax + ay * ay + az * az;
                    run[v] += near_term(r2, own_rho[v], atom.w, &reaches);
#if NECK
                    run[v] += neck_term(necks_of + v, r2, own_rho[v], rho[j], kinds[j], &reaches);
#endif
                }
            }
            end_run(part, run);
        }
        end_run(part, run);
        #pragma unroll
        for (int v = 0; v < VECTORS; ++v) {
            add_compensated(total + v, lost + v, part[v]);
            part[v] = 0;
        }
    }
    global real *own_sums = sums + ((size_t)conformation * get_global_size(1) + walk) * n_slots;
    #pragma unroll
    for (int v = 0; v < VECTORS; ++v) STORE(total[v] + lost[v], tile * TILE + within + v * WIDTH, own_sums);
}
