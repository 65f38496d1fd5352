// Chain rule on GPUs; all pairs of an atom are summed by the same work-items; energy/chain.clh. Third dimension:
// conformations.
#include "common/real.clh"
#include "engine/arguments.clh"
#include "physics/hct.clh"
#include "solvent/hct_tiles.clh"
#include "common/tiles.clh"
#include "energy/rows.clh"
#include "energy/chain.clh"
#include "energy/sums.clh"
#ifndef FINISHES
#error "FINISHES: 1 where results follow, by groups of at least TILE work-items; 0 where a launch of its own finishes"
#endif
#if FINISHES
#include "energy/finish.clh"
#define THEN_FINISH FINISH_PARAMETERS,
#else
#define THEN_FINISH
#endif

// The other tile.
typedef struct {
    local real4 *points;  // x, y, z, weight
    local real4 *first;   // coefficients of r^-6 to r^-12
    local real4 *rest;    // of r^-14 to r^-18, scaled radius
    local real *rhos;
#if NECK
    local int *kinds;
#endif
    int count;
} Met;

// own_series: the coefficients of `own`, n_slots apart
INLINE void add_far_tile(Own *own, const Met *met, global const real *own_series, int n_slots, const int terms) {
    const realv a1 = LOAD(0, own_series), a2 = LOAD(n_slots, own_series);
    realv a3 = 0, a4 = 0, a5 = 0, a6 = 0, a7 = 0;
    if (terms > 2) a3 = LOAD(2 * n_slots, own_series);
    if (terms > 3) a4 = LOAD(3 * n_slots, own_series);
    if (terms > 4) a5 = LOAD(4 * n_slots, own_series);
    if (terms > 5) a6 = LOAD(5 * n_slots, own_series);
    if (terms > 6) a7 = LOAD(6 * n_slots, own_series);
    for (int j = 0; j < met->count; ++j) {
        const real4 other = met->points[j], b = met->first[j];
        real4 c = 0;
        if (terms > 4) c = met->rest[j];
        const realv dx = own->x - other.x, dy = own->y - other.y, dz = own->z - other.z;
        const realv inv_r2 = inverse(dx * dx + dy * dy + dz * dz);
        const realv slope = FAR_SLOPE(inv_r2, terms, own->weight, b, c, other.w, a1, a2, a3, a4, a5, a6, a7);
        own->gx += slope * dx;
        own->gy += slope * dy;
        own->gz += slope * dz;
    }
}

// largest_s: of the own tile
INLINE void add_near_tile(Own *own, const Met *met, const Reaches *reaches, real largest_s) {
    for (int j = 0; j < met->count; ++j) {
        Other other;
        other.sphere = met->points[j];
        other.weight = other.sphere.w;
        other.sphere.w = met->rest[j].w;
        other.rho = met->rhos[j];
#if NECK
        other.kind = met->kinds[j];
#endif
        const realv dx = own->x - other.sphere.x, dy = own->y - other.sphere.y, dz = own->z - other.sphere.z;
        const realv slope = near_slope(own, &other, dx * dx + dy * dy + dz * dz, largest_s, reaches);
        own->gx += slope * dx;
        own->gy += slope * dy;
        own->gz += slope * dz;
    }
}

kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void chain_rows(
    const int n_tiles,
    const Reaches reaches,
    NECK_PARAMETERS
    global const real4 *restrict spheres,   // (n_conformations, n_slots) x, y, z from the tile's origin, s [A]
    global const real *restrict x,          // (n_conformations, n_slots) the same as columns, for whole vectors
    global const real *restrict y,
    global const real *restrict z,
    global const real *restrict weights,    // (n_conformations, n_slots) dE/dI, 0 at unused slots [kcal/mol A]
    global const real *restrict s,          // (n_slots) scaled radius, 0 at unused slots [A]
    global const real *restrict rho,        // (n_slots) offset radius [A]
    global const real4 *restrict series,    // (n_slots, 2) coefficients of r^-6, r^-8, ... r^-18
    global const real *restrict columns,    // (7, n_slots) the same as columns
    global const real4 *restrict origins,   // (n_conformations, n_tiles) origin [A]; w = largest scaled radius [A]
    global const real4 *restrict extents,   // (n_conformations, n_tiles) half edges of the box around the origin [A]
    global const int *restrict counts,      // (n_tiles) atoms in the tile
    THEN_FINISH
    global real *sums)                      // (n_conformations, PAIR_SUMS, n_slots); added to the gradient
{
    SERVES_ROWS(chain_rows)
    local real tile_sums[N_TERMS * TILE], met_rhos[PARTS * TILE];  // three sums, or those of all terms if it FINISHES
    local real4 met_points[PARTS * TILE], met_first[PARTS * TILE], met_rest[PARTS * TILE];
#if NECK
    local int met_kinds[PARTS * TILE];
#endif
    const int item = get_local_id(0), part = item / ITEMS, own_tile = get_group_id(0), conformation = get_global_id(2);
    const int n_slots = n_tiles * TILE, within = item % ITEMS * WIDTH, first = own_tile * TILE + within;
    const size_t at = (size_t)conformation * n_slots, box = (size_t)conformation * n_tiles;
    const real4 origin = origins[box + own_tile], extent = extents[box + own_tile];

    Own own;
    own.rho = LOAD(first, rho);
    own.s = LOAD(first, s);
    own.weight = LOAD(at + first, weights);
    const Necks of_necks = NECKS_GIVEN;
    own.necks = neck_row(n_slots, first, &of_necks);
    realv gx = 0, gy = 0, gz = 0;
    for (int start = 0; start < n_tiles; start += PARTS) {
        const int tile = start + part, skipped = part * TILE;
        Met met;
        met.points = met_points + skipped;
        met.first = met_first + skipped;
        met.rest = met_rest + skipped;
        met.rhos = met_rhos + skipped;
#if NECK
        met.kinds = met_kinds + skipped;
#endif
        met.count = 0;
        if (tile < n_tiles) {
            met.count = counts[tile];
            for (int k = within; k < within + WIDTH; ++k) {
                const int j = tile * TILE + k;
                const real4 sphere = spheres[at + j], rest = series[2 * j + 1];
                met.points[k] = (real4)(sphere.x, sphere.y, sphere.z, weights[at + j]);
                met.first[k] = series[2 * j];
                met.rest[k] = (real4)(rest.x, rest.y, rest.z, sphere.w);
                met.rhos[k] = rho[j];
#if NECK
                met.kinds[k] = kinds[j];
#endif
            }
        }
        PART_BARRIER();
        if (tile < n_tiles) {
            const real4 shift = origin - origins[box + tile];
            const real gap2 = box_gap2(shift, extent, extents[box + tile]);
            const real largest_s = fmax(origin.w, origins[box + tile].w), s_square = largest_s * largest_s;
            const bool far = are_far(gap2, box_span2(shift, extent, extents[box + tile]), largest_s, &reaches);
            own.x = LOAD(at + first, x) + shift.x;
            own.y = LOAD(at + first, y) + shift.y;
            own.z = LOAD(at + first, z) + shift.z;
            own.gx = own.gy = own.gz = 0;
#define ADD_FAR_TILE(terms) add_far_tile(&own, &met, columns + first, n_slots, terms)
            if (out_of_reach(gap2, largest_s, &reaches)) own.gx = 0;
            else if (!far) add_near_tile(&own, &met, &reaches, origin.w);
            else if (gap2 > (real)(FAR_C * FAR_C) * s_square) ADD_FAR_TILE(TERMS_C);
            else if (gap2 > (real)(FAR_B * FAR_B) * s_square) ADD_FAR_TILE(TERMS_B);
            else ADD_FAR_TILE(TERMS_A);
#undef ADD_FAR_TILE
            // Partial sums per tile keep float32 accurate.
            gx += own.gx;
            gy += own.gy;
            gz += own.gz;
        }
        PART_BARRIER();
    }
    const realv totals[3] = {gx, gy, gz};
    global real *out = sums + ((size_t)conformation * PAIR_SUMS + GRADIENT_SUM) * n_slots + own_tile * TILE;
    add_parts(totals, 3, (local real *)met_points, tile_sums);
    for (int k = item; k < 3 * TILE; k += GROUP) out[k / TILE * n_slots + k % TILE] += tile_sums[k];
#if FINISHES
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    const Finish to_finish = {
        PARTS_GIVEN, SUM_PLACES_GIVEN, n_atoms, n_energies, n_results, per_atom, sums, counts, singles, born, order, results};
    finish_tile(own_tile, tile_sums, &to_finish);
#endif
}
