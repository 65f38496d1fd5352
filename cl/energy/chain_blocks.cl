// Chain rule over blocks of two tiles, each pair once for both of its atoms, for CPUs; energy/chain.clh. Work is
// divided as in solvent/blocks.cl; third dimension: conformations.
#include "common/real.clh"
#include "engine/arguments.clh"
#include "physics/hct.clh"
#include "solvent/hct_tiles.clh"
#include "common/tiles.clh"
#include "energy/chain.clh"
#include "energy/sums.clh"
#include "solvent/tile_lists.clh"

// Sums of the other atoms, which come one by one.
typedef struct { realv x, y, z; } Gradient;

INLINE void add_pair(Own *own, Gradient *other, realv dx, realv dy, realv dz, realv slope, const bool both) {
    own->gx += slope * dx;
    own->gy += slope * dy;
    own->gz += slope * dz;
    if (!both) return;
    other->x -= slope * dx;
    other->y -= slope * dy;
    other->z -= slope * dz;
}

// All pairs are far. own_series: the coefficients of `own`, n_slots apart; series: coefficients of each other atom.
INLINE void add_far(
    Own *own, Gradient *others, global const real4 *spheres, global const real *weights, global const real4 *series,
    global const real *own_series, int n_slots, int count, const int terms) {
    const realv a1 = LOAD(0, own_series), a2 = LOAD(n_slots, own_series);
    realv a3 = 0, a4 = 0, a5 = 0, a6 = 0, a7 = 0;
    if (terms > 2) a3 = LOAD(2 * n_slots, own_series);
    if (terms > 3) a4 = LOAD(3 * n_slots, own_series);
    if (terms > 4) a5 = LOAD(4 * n_slots, own_series);
    if (terms > 5) a6 = LOAD(5 * n_slots, own_series);
    if (terms > 6) a7 = LOAD(6 * n_slots, own_series);
    for (int j = 0; j < count; ++j) {
        const real4 other = spheres[j], b = series[2 * j];
        real4 c = 0;
        if (terms > 4) c = series[2 * j + 1];
        const realv dx = own->x - other.x, dy = own->y - other.y, dz = own->z - other.z;
        const realv inv_r2 = inverse(dx * dx + dy * dy + dz * dz);
        add_pair(own, others + j, dx, dy, dz,
                 FAR_SLOPE(inv_r2, terms, own->weight, b, c, weights[j], a1, a2, a3, a4, a5, a6, a7), true);
    }
}

// Other tile from its first atom on.
typedef struct {
    global const real4 *spheres;
    global const real *weights, *rhos;
#if NECK
    global const int *kinds;
#endif
} Tile;

INLINE Other other_atom(const Tile *tile, int j) {
    Other other;
    other.sphere = tile->spheres[j];
    other.weight = tile->weights[j];
    other.rho = tile->rhos[j];
#if NECK
    other.kind = tile->kinds[j];
#endif
    return other;
}

INLINE void add_listed_far(
    Own *own, Gradient *others, const Tile *tile, const int *list, int count, const Reaches *reaches, const bool both) {
    const realv s2 = own->s * own->s, s3 = s2 * own->s;
    for (int k = 0; k < count; ++k) {
        const int j = list[k];
        const Other other = other_atom(tile, j);
        const real4 sphere = other.sphere;
        const realv dx = own->x - sphere.x, dy = own->y - sphere.y, dz = own->z - sphere.z;
        const realv r2 = dx * dx + dy * dy + dz * dz, inv_r2 = inverse(r2);
        const real other_s2 = sphere.w * sphere.w;
        realv slope = own->weight * hct_series_slope(inv_r2, other_s2, other_s2 * sphere.w, TERMS)
                    + other.weight * hct_series_slope(inv_r2, s2, s3, TERMS);
#if NECK
        slope += necks_slope(own, &other, r2, reaches);
#endif
        add_pair(own, others + j, dx, dy, dz, slope, both);
    }
}

// largest_s: of the own tile.
INLINE void add_listed_near(
    Own *own, Gradient *others, const Tile *tile, const int *list, int count, const Reaches *reaches, real largest_s,
    const bool both) {
    for (int k = 0; k < count; ++k) {
        const int j = list[k];
        const Other other = other_atom(tile, j);
        const realv dx = own->x - other.sphere.x, dy = own->y - other.sphere.y, dz = own->z - other.sphere.z;
        const realv slope = near_slope(own, &other, dx * dx + dy * dy + dz * dz, largest_s, reaches);
        add_pair(own, others + j, dx, dy, dz, slope, both);
    }
}

kernel void chain_blocks(
    const int n_tiles,
    const int n_parts,
    const int first_frozen,                // from this tile on they hold frozen atoms alone, which need nothing of each other
    CHAIN_ARGUMENTS,
    global real *restrict sums)             // (n_conformations, n_parts, PAIR_SUMS, n_slots): adds to the gradient
{
    SERVES_ROWS(chain_blocks)
    const int part = get_global_id(0), conformation = get_global_id(2), n_slots = n_tiles * TILE;
    if (part >= n_parts) return;
    const size_t at = (size_t)conformation * n_slots, box = (size_t)conformation * n_tiles;
    global real *out = sums + (((size_t)conformation * n_parts + part) * PAIR_SUMS + GRADIENT_SUM) * n_slots;

    for (int other_tile = part; other_tile < n_tiles; other_tile += n_parts) {
        const int start = other_tile * TILE, count = counts[other_tile];
        const real4 origin = origins[box + other_tile], extent = extents[box + other_tile];
        Tile met;
        met.spheres = spheres + at + start;
        met.weights = weights + at + start;
        met.rhos = rho + start;
#if NECK
        met.kinds = kinds + start;
#endif
        Gradient other_sums[TILE], other_totals[TILE];
        const Gradient none = {0, 0, 0};
        for (int j = 0; j < TILE; ++j) other_sums[j] = other_totals[j] = none;
        // Half way around the ring; the tile opposite in an even ring is met from one side only.
        const int last_step = (n_tiles - (2 * other_tile < n_tiles)) / 2;
        for (int step = 0; step <= last_step; ++step) {
            const int tile = (other_tile + step) % n_tiles;
            const real4 shift = origins[box + tile] - origin;
            const real gap2 = box_gap2(shift, extents[box + tile], extent);
            const real largest_s = fmax(origin.w, origins[box + tile].w), s_square = largest_s * largest_s;
            const bool far = are_far(gap2, box_span2(shift, extents[box + tile], extent), largest_s, &reaches);
            const bool counts_at_all = min(tile, other_tile) < first_frozen && !out_of_reach(gap2, largest_s, &reaches);
            int near_list[TILE], far_list[TILE];
            int2 listed = 0;
            if (!far && counts_at_all) listed = list_atoms(near_list, far_list, x + at + start, y + at + start, z + at + start, s + start,
                                          count, shift, extents[box + tile], origins[box + tile].w, &reaches);
            for (int i = tile * TILE; counts_at_all && i < (tile + 1) * TILE; i += WIDTH) {
                Own own;
                own.x = LOAD(at + i, x) + shift.x;
                own.y = LOAD(at + i, y) + shift.y;
                own.z = LOAD(at + i, z) + shift.z;
                own.rho = LOAD(i, rho);
                own.s = LOAD(i, s);
                own.weight = LOAD(at + i, weights);
                own.gx = own.gy = own.gz = 0;
#if NECK
                own.necks = neck_row(n_slots, i, OF_NECKS);
#endif
#define ADD_FAR(terms) \
    add_far(&own, other_sums, met.spheres, met.weights, series + 2 * start, columns + i, n_slots, count, terms)
                if (far && gap2 > (real)(FAR_C * FAR_C) * s_square) ADD_FAR(TERMS_C);
                else if (far && gap2 > (real)(FAR_B * FAR_B) * s_square) ADD_FAR(TERMS_B);
                else if (far) ADD_FAR(TERMS_A);
#undef ADD_FAR
                else if (step == 0) {
                    add_listed_far(&own, other_sums, &met, far_list, listed.y, &reaches, false);
                    add_listed_near(&own, other_sums, &met, near_list, listed.x, &reaches, origins[box + tile].w, false);
                } else {
                    add_listed_far(&own, other_sums, &met, far_list, listed.y, &reaches, true);
                    add_listed_near(&own, other_sums, &met, near_list, listed.x, &reaches, origins[box + tile].w, true);
                }
                STORE(LOAD(i, out) + own.gx, i, out);
                STORE(LOAD(n_slots + i, out) + own.gy, n_slots + i, out);
                STORE(LOAD(2 * n_slots + i, out) + own.gz, 2 * n_slots + i, out);
            }
            if (step % RUN_OF_TILES == 0 || step == last_step) {
                for (int j = 0; j < TILE; ++j) {
                    other_totals[j].x += other_sums[j].x;
                    other_totals[j].y += other_sums[j].y;
                    other_totals[j].z += other_sums[j].z;
                    other_sums[j] = none;
                }
            }
        }
        for (int j = 0; j < count; ++j) {
            out[start + j] += lane_sum(other_totals[j].x);
            out[n_slots + start + j] += lane_sum(other_totals[j].y);
            out[2 * n_slots + start + j] += lane_sum(other_totals[j].z);
        }
    }
}
