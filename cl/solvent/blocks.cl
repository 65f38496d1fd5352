// HCT sums over blocks of two tiles of spatially sorted atoms, for CPUs; reasons: docs/variants.md, "tiled".
//
// A block gives what the atoms of either tile take from the other's: distance and reciprocal are computed once for
// both. The atoms of the one are vectors of WIDTH. The others come one by one, each with a vector of sums of its own. A
// work-item walks every n_parts-th tile. It pairs it with half of the others in a ring, so that each two meet once. It
// adds to sums of its own: no atomics, no barriers, equal bits in every run. Positions are relative to a tile's origin.
// Conformations of a molecule are the third dimension.
#include "common/real.clh"
#include "engine/arguments.clh"
#include "physics/hct.clh"
#include "solvent/hct_tiles.clh"
#include "common/tiles.clh"
#include "solvent/tile_lists.clh"

// A vector of atoms: position from the other tile's origin, offset and scaled radius [A], and its sums.
typedef struct {
    realv x, y, z, rho, s, sum;
    NeckRow necks;
} Own;

// Other tile from its first atom on.
typedef struct {
    global const real4 *atoms;   // x, y, z, scaled radius
    global const real4 *series;  // two an atom
    global const real *rhos;
#if NECK
    global const int *kinds;
#endif
} Other;

INLINE realv distance2(const Own *own, real4 other) {
    const realv dx = own->x - other.x, dy = own->y - other.y, dz = own->z - other.z;
    return dx * dx + dy * dy + dz * dz;
}

// Coefficients of the series for a vector of atoms; 0 beyond the terms that are wanted.
typedef struct { realv a1, a2, a3, a4, a5, a6, a7; } Series;

INLINE Series load_series(global const real *columns, int n_slots, const int terms) {
    Series own = {LOAD(0, columns), LOAD(n_slots, columns), 0, 0, 0, 0, 0};
    if (terms > 2) own.a3 = LOAD(2 * n_slots, columns);
    if (terms > 3) own.a4 = LOAD(3 * n_slots, columns);
    if (terms > 4) own.a5 = LOAD(4 * n_slots, columns);
    if (terms > 5) own.a6 = LOAD(5 * n_slots, columns);
    if (terms > 6) own.a7 = LOAD(6 * n_slots, columns);
    return own;
}

// Terms that a vector of atoms takes from a sphere, and terms that it gives to one. series: two real4 of the other
// atom.
INLINE realv taken(realv inv_r2, global const real4 *series, const int terms) {
    const real4 b = series[0];
    real4 c = 0;
    if (terms > 3) c = series[1];
    return inv_r2 * inv_r2 * SERIES_SUM(inv_r2, terms, b.y, b.z, b.w, c.x, c.y, c.z, c.w);
}
INLINE realv given(realv inv_r2, const Series *own, const int terms) {
    return inv_r2 * inv_r2
         * SERIES_SUM(inv_r2, terms, own->a1, own->a2, own->a3, own->a4, own->a5, own->a6, own->a7);
}

// All pairs are far. columns: the coefficients of `own`, n_slots apart; series: coefficients of each other atom, after
// the square of its distance from the origin.
INLINE void add_far(
    Own *own, realv *other_sums, global const real4 *atoms, global const real4 *series, global const real *columns,
    int n_slots, int count, const int terms) {
    const realv norm = own->x * own->x + own->y * own->y + own->z * own->z;
    const realv x = (real)-2 * own->x, y = (real)-2 * own->y, z = (real)-2 * own->z;
    const Series spheres = load_series(columns, n_slots, terms);
    realv sum = own->sum;
    for (int j = 0; j < count; ++j) {
        const real4 other = atoms[j];
        const realv inv_r2 = inverse((norm + series[2 * j].x) + x * other.x + y * other.y + z * other.z);
        sum += taken(inv_r2, series + 2 * j, terms);
        other_sums[j] += given(inv_r2, &spheres, terms);
    }
    own->sum = sum;
}

#if NECK
// Necks of a pair; r2: the square of its distance.
INLINE void add_necks(const Own *own, realv *sum, realv *other_sum, realv r2, const Other *others, int j,
                      const Reaches *reaches, const bool both) {
    const maskv have = have_necks(r2, own->rho, others->rhos[j], reaches);
    if (!ANY(have)) return;
    const NeckPair neck = neck_pair(&own->necks, others->kinds[j]);
    const realv r = r2 * inverse_sqrt(fmax(r2, CLOSEST_R2));
    *sum += CHOOSE((real)0, neck_integral(r - neck.distance, neck.size), have);
    if (both) *other_sum += CHOOSE((real)0, neck_integral(r - neck.given_distance, neck.given_size), have);
}
#endif

// Listed atoms have far pairs. In float64 they need more terms than are ready. both, a constant: true if the listed
// atoms take from own ones, too; not in a tile's own block.
INLINE void add_listed_far(
    Own *own, realv *other_sums, const Other *others, global const real *columns, int n_slots, const int *list, int count,
    const Reaches *reaches, const bool both) {
    const realv s2 = own->s * own->s, s3 = s2 * own->s;
    const Series spheres = load_series(columns, n_slots, TERMS);
    realv sum = own->sum;
    for (int k = 0; k < count; ++k) {
        const int j = list[k];
        const real4 other = others->atoms[j];
        const realv r2 = distance2(own, other), inv_r2 = inverse(r2);
        const real other_s2 = other.w * other.w;
        if (TERMS <= READY_TERMS) {
            sum += taken(inv_r2, others->series + 2 * j, TERMS);
            if (both) other_sums[j] += given(inv_r2, &spheres, TERMS);
        } else {
            sum += hct_series(inv_r2, other_s2, other_s2 * other.w, TERMS);
            if (both) other_sums[j] += hct_series(inv_r2, s2, s3, TERMS);
        }
#if NECK
        add_necks(own, &sum, other_sums + j, r2, others, j, reaches, both);
#endif
    }
    own->sum = sum;
}

// Each pair is looked at. largest_s: of the own tile.
INLINE void add_listed_near(
    Own *own, realv *other_sums, const Other *others, const int *list, int count, const Reaches *reaches, real largest_s,
    const bool both) {
    const realv s2 = own->s * own->s, s3 = s2 * own->s, inv_rho = inverse(own->rho);
    realv sum = own->sum;
    for (int k = 0; k < count; ++k) {
        const int j = list[k];
        const real4 other = others->atoms[j];
        const real other_rho = others->rhos[j];
        const realv r2 = distance2(own, other);
        const realv apart_r2 = fmax(r2, CLOSEST_R2), inv_r2 = inverse(apart_r2);
        const real s = fmax(largest_s, fabs(other.w)), other_s2 = other.w * other.w;
        const real reach = fmax((real)CLOSED * s, reaches->largest_rho + s);
        maskv near = r2 < (realv)(reach * reach);
#if RGB_MAX
        const real within = fmax((real)0, reaches->rgb_max - s);
        near = near | (r2 > (realv)(within * within));
#endif
        realv term = hct_series(inv_r2, other_s2, other_s2 * other.w, CLOSED_TERMS), other_term = 0;
        if (both) other_term = hct_series(inv_r2, s2, s3, CLOSED_TERMS);
        if (ANY(near)) {
            const realv inv_r = inverse_sqrt(apart_r2), r = apart_r2 * inv_r;
            const realv closed = hct_closed(r, inv_r, own->rho, inv_rho, other.w, reaches->rgb_max);
            term = CHOOSE(term, if_apart(closed, r2), near);
            if (both) {
                const realv other_closed = hct_closed(r, inv_r, other_rho, (real)1 / other_rho, own->s, reaches->rgb_max);
                other_term = CHOOSE(other_term, if_apart(other_closed, r2), near);
            }
        }
        sum += term;
        if (both) other_sums[j] += other_term;
#if NECK
        add_necks(own, &sum, other_sums + j, r2, others, j, reaches, both);
#endif
    }
    own->sum = sum;
}

kernel void born_sums_blocks(
    const int n_tiles,
    const int n_parts,
    const int first_frozen,                // from this tile on they hold frozen atoms alone, which need nothing of each other
    const int first_tile,                  // tiles to walk: a multiple of n_parts, and the end
    const int last_tile,
    const Reaches reaches,
    NECK_ARGUMENTS(restrict)
    global const real4 *restrict atoms,    // (n_conformations, n_slots) x, y, z from the tile's origin [A], scaled radius [A]
    global const real *restrict x,         // (n_conformations, n_slots) the same as columns, for whole vectors
    global const real *restrict y,
    global const real *restrict z,
    global const real *restrict s,         // (n_slots) scaled radius, 0 at unused slots [A]
    global const real *restrict rho,       // (n_slots) offset radius [A]
    global const real4 *restrict series,   // (n_conformations, n_slots, 2) x^2 + y^2 + z^2, then coefficients of r^-4, r^-6, ... r^-16
    global const real *restrict columns,   // (7, n_slots) the coefficients as columns
    global const real4 *restrict origins,  // (n_conformations, n_tiles) origin [A]; w = largest scaled radius [A]
    global const real4 *restrict extents,  // (n_conformations, n_tiles) half edges of the box around the origin [A]
    global const int *restrict counts,     // (n_tiles) atoms in the tile
    global real *restrict sums)            // (n_conformations, n_parts, n_slots) part of the Born integral [1/A]
{
    SERVES_ROWS(born_sums_blocks)
    const int part = get_global_id(0), conformation = get_global_id(2), n_slots = n_tiles * TILE;
    if (part >= n_parts) return;
    const size_t at = (size_t)conformation * n_slots, box = (size_t)conformation * n_tiles;
    global real *own_sums = sums + ((size_t)conformation * n_parts + part) * n_slots;
    if (first_tile == 0) for (int i = 0; i < n_slots; i += WIDTH) STORE((realv)0, i, own_sums);

    for (int other_tile = first_tile + part; other_tile < last_tile; other_tile += n_parts) {
        const int start = other_tile * TILE, count = counts[other_tile];
        const real4 origin = origins[box + other_tile], extent = extents[box + other_tile];
        realv other_sums[TILE], other_totals[TILE];
        Other other;
        other.atoms = atoms + at + start;
        other.series = series + 2 * (at + start);
        other.rhos = rho + start;
#if NECK
        other.kinds = kinds + start;
#endif
        for (int j = 0; j < TILE; ++j) other_sums[j] = other_totals[j] = 0;
        // Half way around the ring; the tile opposite in an even ring is met from one side only.
        const int last_step = (n_tiles - (2 * other_tile < n_tiles)) / 2;
        for (int step = 0; step <= last_step; ++step) {
            const int tile = (other_tile + step) % n_tiles;
            const real4 shift = origins[box + tile] - origin;
            const real gap2 = box_gap2(shift, extents[box + tile], extent);
            const real largest_s = fmax(origin.w, origins[box + tile].w), s_square = largest_s * largest_s;
            const real reach = reaches.largest_rho + largest_s;
            const bool far = gap2 > (real)(FAR_A * FAR_A) * s_square && keeps_digits(gap2, extent) && gap2 > reach * reach
                          && gap2 >= necks_end2(&reaches)
                          && !beyond_limit(box_span2(shift, extents[box + tile], extent), largest_s, &reaches);
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
                own.sum = 0;
#if NECK
                own.necks = neck_row(n_slots, i, OF_NECKS);
#endif
#define ADD_FAR(terms) \
    add_far(&own, other_sums, other.atoms, other.series, columns + i, n_slots, count, terms)
                if (far && gap2 > (real)(FAR_C * FAR_C) * s_square) ADD_FAR(TERMS_C);
                else if (far && gap2 > (real)(FAR_B * FAR_B) * s_square) ADD_FAR(TERMS_B);
                else if (far) ADD_FAR(TERMS_A);
#undef ADD_FAR
                else if (step == 0) {
                    add_listed_far(&own, other_sums, &other, columns + i, n_slots, far_list, listed.y, &reaches, false);
                    add_listed_near(&own, other_sums, &other, near_list, listed.x, &reaches, origins[box + tile].w, false);
                } else {
                    add_listed_far(&own, other_sums, &other, columns + i, n_slots, far_list, listed.y, &reaches, true);
                    add_listed_near(&own, other_sums, &other, near_list, listed.x, &reaches, origins[box + tile].w, true);
                }
                STORE(LOAD(i, own_sums) + own.sum, i, own_sums);
            }
            if (step % RUN_OF_TILES == 0 || step == last_step) {
                for (int j = 0; j < TILE; ++j) {
                    other_totals[j] += other_sums[j];
                    other_sums[j] = 0;
                }
            }
        }
        for (int j = 0; j < count; ++j) own_sums[start + j] += lane_sum(other_totals[j]);
    }
}
