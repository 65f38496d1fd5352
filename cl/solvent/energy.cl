// GB potential at every atom of all others, by tiles of spatially sorted atoms.
//
// A work-item owns VECTORS vectors of WIDTH atoms, all of one tile, and walks the tiles of one chunk (second dimension).
// Positions are relative to their tile's origin; each atom sums its own row, tile by tile.
#include "common/real.clh"
#include "physics/gb_still.clh"

#ifndef TILE
#error "TILE: atoms in a tile; a multiple of WIDTH * VECTORS"
#endif
#ifndef VECTORS
#error "VECTORS: vectors of atoms a work-item owns"
#endif

// Closer than this is the atom itself (A^2); the host refuses two atoms within 1e-4 A.
#define SELF_R2 (real)2.5e-9

typedef struct {
    realv x[VECTORS], y[VECTORS], z[VECTORS], inv_born[VECTORS], sum[VECTORS];
} Own;

// own_tile, a constant: whether the tile holds the atoms themselves, which are left out.
INLINE void add_tile(
    Own *own, global const real4 *atoms, global const real *inv_born, int first, int last, const bool own_tile,
    real inv_inside, real inv_outside, real kappa) {
    for (int j = first; j < last; ++j) {
        const real4 other = atoms[j];
        const real other_inv = inv_born[j];
        #pragma unroll
        for (int v = 0; v < VECTORS; ++v) {
            const realv dx = own->x[v] - other.x, dy = own->y[v] - other.y, dz = own->z[v] - other.z;
            const realv r2 = dx * dx + dy * dy + dz * dz;
            const realv inv_product = own->inv_born[v] * other_inv;
            const realv gauss = still_gauss(r2, GAUSS_EXPONENT * inv_product);
            realv energy = still_inverse_f(r2, inverse(inv_product), gauss), kappa_f;
#if SCREENED
            energy = -gb_energy(energy, gb_screened(energy, kappa, inv_outside, &kappa_f), inv_inside);
#endif
            own->sum[v] += other.w * (own_tile ? CHOOSE((real)0, energy, r2 > SELF_R2) : energy);
        }
    }
}

kernel void gb_potential(
    const int n_tiles,
    const int tiles_per_chunk,
    const real inv_inside,                 // 1 / solute dielectric
    const real inv_outside,                // 1 / solvent dielectric
    const real kappa,                      // inverse screening length [1/A]
    global const real4 *restrict atoms,    // (n_places) x, y, z from the tile's origin [A], charge [e]
    global const real *restrict x,         // (n_places) the same x, y, z as columns, for whole vectors
    global const real *restrict y,
    global const real *restrict z,
    global const real *restrict inv_born,  // (n_places) 1 / Born radius [1/A]
    global const real4 *restrict origins,  // (n_tiles) origin [A]
    global const int *restrict counts,     // (n_tiles) atoms in the tile
    global real *restrict potential)       // (n_chunks, n_places) part of sum_j q_j (1/in - exp(-kappa f)/out)/f [e/A]
{
    const int first = get_global_id(0) * WIDTH * VECTORS;
    const int chunk = get_global_id(1);
    const int n_places = n_tiles * TILE;
    if (first >= n_places) return;
    const int own_tile = first / TILE;
    const real4 origin = origins[own_tile];

    Own own;
    realv total[VECTORS];
    #pragma unroll
    for (int v = 0; v < VECTORS; ++v) {
        own.inv_born[v] = LOAD(first + v * WIDTH, inv_born);
        total[v] = 0;
    }
    const int end = min((chunk + 1) * tiles_per_chunk, n_tiles);
    for (int tile = chunk * tiles_per_chunk; tile < end; ++tile) {
        const real4 shift = origin - origins[tile];
        #pragma unroll
        for (int v = 0; v < VECTORS; ++v) {
            own.x[v] = LOAD(first + v * WIDTH, x) + shift.x;
            own.y[v] = LOAD(first + v * WIDTH, y) + shift.y;
            own.z[v] = LOAD(first + v * WIDTH, z) + shift.z;
            own.sum[v] = 0;
        }
        const int j = tile * TILE, j_end = j + counts[tile];
        if (tile == own_tile) add_tile(&own, atoms, inv_born, j, j_end, true, inv_inside, inv_outside, kappa);
        else add_tile(&own, atoms, inv_born, j, j_end, false, inv_inside, inv_outside, kappa);
        #pragma unroll
        for (int v = 0; v < VECTORS; ++v) total[v] += own.sum[v];
    }
    #pragma unroll
    for (int v = 0; v < VECTORS; ++v) {
#if !SCREENED
        total[v] = -gb_energy(total[v], inv_outside, inv_inside);
#endif
        STORE(total[v], (size_t)chunk * n_places + first + v * WIDTH, potential);
    }
}

// The sum of an atom's parts, with what rounding takes from it collected beside it (Neumaier, ZAMM 54, 39 (1974)).
kernel void add_potentials(
    const int n_places,
    const int n_parts,
    global const real *restrict parts,  // (n_parts, n_places)
    global real *restrict potential)    // (n_places)
{
    const int i = get_global_id(0);
    if (i >= n_places) return;
    real sum = 0, lost = 0;
    for (int part = 0; part < n_parts; ++part) {
        const real term = parts[(size_t)part * n_places + i], next = sum + term;
        lost += fabs(sum) > fabs(term) ? (sum - next) + term : (term - next) + sum;
        sum = next;
    }
    potential[i] = sum + lost;
}
