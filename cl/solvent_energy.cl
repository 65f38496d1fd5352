// GB potential of every atom by tiles of spatially sorted atoms, all pairs and the atom itself (r = 0, f = Born radius).
//
// A work-item owns VECTORS vectors of WIDTH atoms, all of one tile, and walks the tiles of one chunk (second dimension).
// Positions are relative to their tile's origin; each atom sums its own row, tile by tile.
#include "real.clh"
#include "gb.clh"

#ifndef TILE
#error "TILE: atoms in a tile; a multiple of WIDTH * VECTORS"
#endif
#ifndef VECTORS
#error "VECTORS: vectors of atoms a work-item owns"
#endif
#ifndef SCREENED
#error "SCREENED: 1 where ions screen (kappa > 0), else 0"
#endif

kernel void gb_potential(
    const int n_atoms,
    const int n_tiles,
    const int tiles_per_chunk,
    const real inv_inside,                 // 1 / solute dielectric
    const real inv_outside,                // 1 / solvent dielectric
    const real kappa,                      // inverse screening length [1/A]
    global const real4 *restrict atoms,    // (n_padded) x, y, z from the tile's origin [A], charge [e]
    global const real *restrict x,         // (n_padded) the same x, y, z as columns, for whole vectors
    global const real *restrict y,
    global const real *restrict z,
    global const real *restrict inv_born,  // (n_padded) 1 / Born radius [1/A]
    global const real4 *restrict origins,  // (n_tiles) origin [A]
    global real *restrict potential)       // (n_chunks, n_padded) part of sum_j q_j (1/in - exp(-kappa f)/out)/f [e/A]
{
    const int first = get_global_id(0) * WIDTH * VECTORS;
    const int chunk = get_global_id(1);
    const int n_padded = n_tiles * TILE;
    if (first >= n_padded) return;
    const real4 origin = origins[first / TILE];

    realv own_x[VECTORS], own_y[VECTORS], own_z[VECTORS], own_inv[VECTORS], total[VECTORS];
    #pragma unroll
    for (int v = 0; v < VECTORS; ++v) {
        own_inv[v] = LOAD(first + v * WIDTH, inv_born);
        total[v] = 0;
    }
    const int end = min((chunk + 1) * tiles_per_chunk, n_tiles);
    for (int tile = chunk * tiles_per_chunk; tile < end; ++tile) {
        const real4 shift = origin - origins[tile];
        realv sum[VECTORS];
        #pragma unroll
        for (int v = 0; v < VECTORS; ++v) {
            own_x[v] = LOAD(first + v * WIDTH, x) + shift.x;
            own_y[v] = LOAD(first + v * WIDTH, y) + shift.y;
            own_z[v] = LOAD(first + v * WIDTH, z) + shift.z;
            sum[v] = 0;
        }
        const int j_end = min((tile + 1) * TILE, n_atoms);
        for (int j = tile * TILE; j < j_end; ++j) {
            const real4 other = atoms[j];
            const real other_inv = inv_born[j];
            #pragma unroll
            for (int v = 0; v < VECTORS; ++v) {
                const realv dx = own_x[v] - other.x, dy = own_y[v] - other.y, dz = own_z[v] - other.z;
                const realv inv_f = inverse_gb_distance(dx * dx + dy * dy + dz * dz, own_inv[v], other_inv);
#if SCREENED
                sum[v] += other.w * (inv_inside - exp(-kappa * inverse(inv_f)) * inv_outside) * inv_f;
#else
                sum[v] += other.w * inv_f;
#endif
            }
        }
        #pragma unroll
        for (int v = 0; v < VECTORS; ++v) total[v] += sum[v];
    }
    #pragma unroll
    for (int v = 0; v < VECTORS; ++v) {
#if !SCREENED
        total[v] *= inv_inside - inv_outside;
#endif
        STORE(total[v], chunk * n_padded + first + v * WIDTH, potential);
    }
}
