// HCT sums over tiles of spatially sorted atoms, row by row, for GPUs; why so: docs/variants.md, "tiled".
//
// A work-item owns VECTORS vectors of WIDTH atoms, all of one tile, and walks the tiles of one chunk (second dimension)
// of one conformation (third dimension).
// Whole tiles are near or far by their boxes: far ones take a short series without a test, near ones test each pair.
// Positions are relative to their tile's origin, so float32 keeps its digits in large structures. Each atom sums its own
// row: no atomics, no barriers, the same bits every run.
#include "real.clh"
#include "born.clh"
#include "hct_tiles.clh"
#include "tiles.clh"

#ifndef TILE
#error "TILE: atoms in a tile; a multiple of WIDTH * VECTORS"
#endif
#ifndef VECTORS
#error "VECTORS: vectors of atoms a work-item owns"
#endif

typedef struct { realv x[VECTORS], y[VECTORS], z[VECTORS], rho[VECTORS], sum[VECTORS]; } Own;

// series: the square of an atom's distance from its origin, and the coefficients of the far terms.
INLINE void add_far_tile(
    Own *own, global const real4 *atoms, global const real4 *series, int first, int last, const int terms) {
    realv norm[VECTORS], x[VECTORS], y[VECTORS], z[VECTORS];
    #pragma unroll
    for (int v = 0; v < VECTORS; ++v) {
        norm[v] = own->x[v] * own->x[v] + own->y[v] * own->y[v] + own->z[v] * own->z[v];
        x[v] = (real)-2 * own->x[v];
        y[v] = (real)-2 * own->y[v];
        z[v] = (real)-2 * own->z[v];
    }
    for (int j = first; j < last; ++j) {
        const real4 other = atoms[j], b = series[2 * j];
        real4 c = 0;
        if (terms > 3) c = series[2 * j + 1];
        #pragma unroll
        for (int v = 0; v < VECTORS; ++v) {
            const realv inv_r2 = inverse((norm[v] + b.x) + x[v] * other.x + y[v] * other.y + z[v] * other.z);
            own->sum[v] += inv_r2 * inv_r2 * SERIES_SUM(inv_r2, terms, b.y, b.z, b.w, c.x, c.y, c.z, c.w);
        }
    }
}

INLINE void add_near_tile(Own *own, global const real4 *atoms, int first, int last, real largest_rho) {
    for (int j = first; j < last; ++j) {
        const real4 other = atoms[j];
        const real s2 = other.w * other.w, s3 = s2 * other.w;
        const real reach = fmax((real)FAR * other.w, largest_rho + other.w);
        #pragma unroll
        for (int v = 0; v < VECTORS; ++v) {
            const realv dx = own->x[v] - other.x, dy = own->y[v] - other.y, dz = own->z[v] - other.z;
            const realv r2 = dx * dx + dy * dy + dz * dz;
            const maskv near = r2 < (realv)(reach * reach);
            realv half_term = hct_series(inverse(r2), s2, s3, TERMS);
            if (ANY(near)) {
                const realv apart_r2 = fmax(r2, SELF_R2), inv_r = inverse_sqrt(apart_r2);
                const realv closed = hct_closed(apart_r2 * inv_r, inv_r, own->rho[v], inverse(own->rho[v]), other.w);
                half_term = CHOOSE(half_term, CHOOSE((real)0, closed, r2 > SELF_R2), near);
            }
            own->sum[v] += half_term;
        }
    }
}

kernel void born_sums(
    const int n_tiles,
    const int tiles_per_chunk,
    const real largest_rho,                // largest offset radius of all atoms [A]
    global const real4 *restrict atoms,    // (n_conformations, n_places) x, y, z from the tile's origin [A], scaled radius [A]
    global const real *restrict x,         // (n_conformations, n_places) the same x, y, z as columns, for whole vectors
    global const real *restrict y,
    global const real *restrict z,
    global const real *restrict rho,       // (n_places) offset radius [A]
    global const real4 *restrict series,   // (n_conformations, n_places, 2) x^2 + y^2 + z^2, then coefficients of r^-4, r^-6, ... r^-16
    global const real4 *restrict origins,  // (n_conformations, n_tiles) origin [A]; w = largest scaled radius [A]
    global const real4 *restrict extents,  // (n_conformations, n_tiles) half edges of the box around the origin [A]
    global const int *restrict counts,     // (n_tiles) atoms in the tile
    global real *restrict sums)            // (n_conformations, n_chunks, n_places) part of the Born integral [1/A]
{
    const int first = get_global_id(0) * WIDTH * VECTORS;
    const int chunk = get_global_id(1), conformation = get_global_id(2);
    const int n_places = n_tiles * TILE, n_chunks = (n_tiles + tiles_per_chunk - 1) / tiles_per_chunk;
    if (first >= n_places) return;
    const size_t at = (size_t)conformation * n_places, box = (size_t)conformation * n_tiles;
    const real4 origin = origins[box + first / TILE], extent = extents[box + first / TILE];

    Own own;
    realv total[VECTORS];
    #pragma unroll
    for (int v = 0; v < VECTORS; ++v) {
        own.rho[v] = LOAD(first + v * WIDTH, rho);
        total[v] = 0;
    }
    const int end = min((chunk + 1) * tiles_per_chunk, n_tiles);
    for (int tile = chunk * tiles_per_chunk; tile < end; ++tile) {
        const real4 shift = origin - origins[box + tile];
        const real gap2 = box_gap2(shift, extent, extents[box + tile]);
        const real s = origins[box + tile].w, s_square = s * s;
        #pragma unroll
        for (int v = 0; v < VECTORS; ++v) {
            own.x[v] = LOAD(at + first + v * WIDTH, x) + shift.x;
            own.y[v] = LOAD(at + first + v * WIDTH, y) + shift.y;
            own.z[v] = LOAD(at + first + v * WIDTH, z) + shift.z;
            own.sum[v] = 0;
        }
        const int j = tile * TILE, j_end = j + counts[tile];
        const bool far = gap2 > (real)(FAR_A * FAR_A) * s_square && gap2 > (largest_rho + s) * (largest_rho + s)
                      && keeps_digits(gap2, extents[box + tile]);
        if (!far) add_near_tile(&own, atoms + at, j, j_end, largest_rho);
        else if (gap2 > (real)(FAR_C * FAR_C) * s_square) add_far_tile(&own, atoms + at, series + 2 * at, j, j_end, TERMS_C);
        else if (gap2 > (real)(FAR_B * FAR_B) * s_square) add_far_tile(&own, atoms + at, series + 2 * at, j, j_end, TERMS_B);
        else add_far_tile(&own, atoms + at, series + 2 * at, j, j_end, TERMS_A);
        // Summing tile by tile keeps the runs short, so that float32 sums over 100,000 atoms stay good to 1e-6.
        #pragma unroll
        for (int v = 0; v < VECTORS; ++v) total[v] += own.sum[v];
    }
    #pragma unroll
    for (int v = 0; v < VECTORS; ++v) {
        global real *own_sums = sums + ((size_t)conformation * n_chunks + chunk) * n_places;
        STORE(total[v], first + v * WIDTH, own_sums);
    }
}
