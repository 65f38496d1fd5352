// HCT sums over tiles of spatially sorted atoms; why so: docs/variants.md, "tiled".
//
// A work-item owns VECTORS vectors of WIDTH atoms, all of one tile, and walks the tiles of one chunk (second dimension).
// Whole tiles are near or far by their boxes: far ones take the short series without a test, near ones test each pair.
// Positions are relative to their tile's origin, so float32 keeps its digits in large structures. Each atom sums its own
// row: no atomics, no barriers, the same bits every run.
#include "real.clh"
#include "born.clh"

#ifndef TILE
#error "TILE: atoms in a tile; a multiple of WIDTH * VECTORS"
#endif
#ifndef VECTORS
#error "VECTORS: vectors of atoms a work-item owns"
#endif
#ifndef FAR
#error "FAR: pairs beyond FAR scaled radii take the series"
#endif
#ifndef TERMS
#error "TERMS: terms of the series at FAR scaled radii"
#endif
#ifndef REMOTE_TERMS
#error "REMOTE_TERMS: terms of the series at 2 * FAR scaled radii"
#endif

// Closer than this is the atom itself (A^2); the host refuses two atoms within 1e-4 A.
#define SELF_R2 (real)2.5e-9

typedef struct { realv x[VECTORS], y[VECTORS], z[VECTORS], rho[VECTORS], sum[VECTORS]; } Own;

INLINE realv distance2(const Own *own, int v, real4 other) {
    const realv dx = own->x[v] - other.x, dy = own->y[v] - other.y, dz = own->z[v] - other.z;
    return dx * dx + dy * dy + dz * dz;
}

// The series serves beyond this distance: where it converges fast, and where no sphere overlaps an atom.
INLINE real series_reach(real s, real largest_rho) { return fmax((real)FAR * s, largest_rho + s); }

INLINE void add_far_tile(Own *own, global const real4 *atoms, int first, int last, const int terms) {
    for (int j = first; j < last; ++j) {
        const real4 other = atoms[j];
        const real s2 = other.w * other.w, s3 = s2 * other.w;
        #pragma unroll
        for (int v = 0; v < VECTORS; ++v) own->sum[v] += hct_series(inverse(distance2(own, v, other)), s2, s3, terms);
    }
}

INLINE void add_near_tile(Own *own, global const real4 *atoms, int first, int last, real largest_rho) {
    for (int j = first; j < last; ++j) {
        const real4 other = atoms[j];
        const real s2 = other.w * other.w, s3 = s2 * other.w;
        const real reach = series_reach(other.w, largest_rho);
        #pragma unroll
        for (int v = 0; v < VECTORS; ++v) {
            const realv r2 = distance2(own, v, other);
            const maskv near = r2 < (realv)(reach * reach);
            realv half_term = hct_series(inverse(r2), s2, s3, TERMS);
            if (ANY(near)) {
                const realv closed = CHOOSE((real)0, hct_closed(fmax(r2, SELF_R2), own->rho[v], other.w), r2 > SELF_R2);
                half_term = CHOOSE(half_term, closed, near);
            }
            own->sum[v] += half_term;
        }
    }
}

kernel void born_sums(
    const int n_tiles,
    const int tiles_per_chunk,
    const real largest_rho,                // largest offset radius of all atoms [A]
    global const real4 *restrict atoms,    // (n_places) x, y, z from the tile's origin [A], scaled radius [A]
    global const real *restrict x,         // (n_places) the same x, y, z as columns, for whole vectors
    global const real *restrict y,
    global const real *restrict z,
    global const real *restrict rho,       // (n_places) offset radius [A]
    global const real4 *restrict origins,  // (n_tiles) origin [A]; w = largest scaled radius [A]
    global const real4 *restrict extents,  // (n_tiles) half edges of the box around the origin [A]
    global const int *restrict counts,     // (n_tiles) atoms in the tile
    global real *restrict sums)            // (n_chunks, n_places) part of the Born integral [1/A]
{
    const int first = get_global_id(0) * WIDTH * VECTORS;
    const int chunk = get_global_id(1);
    const int n_places = n_tiles * TILE;
    if (first >= n_places) return;
    const real4 origin = origins[first / TILE], extent = extents[first / TILE];

    Own own;
    realv total[VECTORS];
    #pragma unroll
    for (int v = 0; v < VECTORS; ++v) {
        own.rho[v] = LOAD(first + v * WIDTH, rho);
        total[v] = 0;
    }
    const int end = min((chunk + 1) * tiles_per_chunk, n_tiles);
    for (int tile = chunk * tiles_per_chunk; tile < end; ++tile) {
        const real4 shift = origin - origins[tile];
        real4 gap = fmax(fabs(shift) - extent - extents[tile], (real)0);
        gap.w = 0;
        const real reach = series_reach(origins[tile].w, largest_rho);
        const real gap2 = dot(gap, gap);
        #pragma unroll
        for (int v = 0; v < VECTORS; ++v) {
            own.x[v] = LOAD(first + v * WIDTH, x) + shift.x;
            own.y[v] = LOAD(first + v * WIDTH, y) + shift.y;
            own.z[v] = LOAD(first + v * WIDTH, z) + shift.z;
            own.sum[v] = 0;
        }
        const int j = tile * TILE, j_end = j + counts[tile];
        if (gap2 > 4 * reach * reach) add_far_tile(&own, atoms, j, j_end, REMOTE_TERMS);
        else if (gap2 > reach * reach) add_far_tile(&own, atoms, j, j_end, TERMS);
        else add_near_tile(&own, atoms, j, j_end, largest_rho);
        // Summing tile by tile keeps the runs short, so that float32 sums over 100,000 atoms stay good to 1e-6.
        #pragma unroll
        for (int v = 0; v < VECTORS; ++v) total[v] += own.sum[v];
    }
    #pragma unroll
    for (int v = 0; v < VECTORS; ++v) STORE(total[v], chunk * n_places + first + v * WIDTH, sums);
}
