// GB potential at every atom of all others, by tiles of spatially sorted atoms.
//
// A work-item owns VECTORS vectors of WIDTH atoms, all of one tile, and walks the tiles of one chunk (second dimension) of
// one conformation (third dimension). Positions are relative to their tile's origin; each atom sums its own row, tile by tile.
#include "common/real.clh"
#include "common/tiles.clh"
#include "physics/gb_still.clh"

#ifndef TILE
#error "TILE: atoms in a tile; a multiple of WIDTH * VECTORS"
#endif
#ifndef VECTORS
#error "VECTORS: vectors of atoms a work-item owns"
#endif

// Boxes within the root of this may hold two atoms at the same place, CLOSEST_R2, but for rounding (A^2).
#define TOUCHING_GAP2 (real)1e-6

typedef struct {
    realv x[VECTORS], y[VECTORS], z[VECTORS], inv_born[VECTORS], sum[VECTORS];
} Own;

// Values of `tile_is`: how a tile lies to that of the own atoms.
#define APART 0     // no atom of it can stand where an own one does
#define TOUCHING 1  // such atoms are looked for: closest becomes the square of the shortest distance
#define ITSELF 2    // the atoms themselves are left out; closest becomes how many stand where an own one does
INLINE void add_tile(
    Own *own, realv *closest, global const real4 *atoms, global const real *inv_born, int first, int last,
    const int tile_is, real inv_inside, real inv_outside, real kappa) {
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
            own->sum[v] += other.w * (tile_is == ITSELF ? CHOOSE((real)0, energy, r2 >= (realv)CLOSEST_R2) : energy);
            if (tile_is == TOUCHING) closest[v] = min(closest[v], r2);
            if (tile_is == ITSELF) closest[v] += CHOOSE((real)1, (real)0, r2 >= (realv)CLOSEST_R2);
        }
    }
}

kernel void gb_potential(
    const int n_tiles,
    const int tiles_per_chunk,
    const real inv_inside,                 // 1 / solute dielectric
    const real inv_outside,                // 1 / solvent dielectric
    const real kappa,                      // inverse screening length [1/A]
    global const real4 *restrict atoms,    // (n_conformations, n_slots) x, y, z from the tile's origin [A], charge
#if WIDTH > 1
    global const real *restrict x,         // (n_conformations, n_slots) the same x, y, z as columns, for whole vectors
    global const real *restrict y,
    global const real *restrict z,
#endif
    global const real *restrict inv_born,  // (n_conformations, n_slots) 1 / Born radius [1/A]
    global const real4 *restrict origins,  // (n_conformations, n_tiles) origin [A]
    global const real4 *restrict extents,  // (n_conformations, n_tiles) half edges of the box around the origin [A]
    global const int *restrict counts,     // (n_tiles) atoms in the tile
    global real *restrict potential)       // (n_conformations, n_chunks, n_slots) part of sum_j q_j (in - exp(-kappa f) out)/f
{
    const int first = get_global_id(0) * WIDTH * VECTORS;
    const int chunk = get_global_id(1), conformation = get_global_id(2);
    const int n_slots = n_tiles * TILE, n_chunks = (n_tiles + tiles_per_chunk - 1) / tiles_per_chunk;
    if (first >= n_slots) return;
    const size_t at = (size_t)conformation * n_slots, box = (size_t)conformation * n_tiles;
    const int own_tile = first / TILE;
    const real4 origin = origins[box + own_tile], extent = extents[box + own_tile];

    Own own;
    realv total[VECTORS];
    #pragma unroll
    for (int v = 0; v < VECTORS; ++v) {
        own.inv_born[v] = LOAD(at + first + v * WIDTH, inv_born);
        total[v] = 0;
    }
    const int end = min((chunk + 1) * tiles_per_chunk, n_tiles);
    for (int tile = chunk * tiles_per_chunk; tile < end; ++tile) {
        const real4 shift = origin - origins[box + tile];
        #pragma unroll
        for (int v = 0; v < VECTORS; ++v) {
#if WIDTH > 1
            own.x[v] = LOAD(at + first + v * WIDTH, x) + shift.x;
            own.y[v] = LOAD(at + first + v * WIDTH, y) + shift.y;
            own.z[v] = LOAD(at + first + v * WIDTH, z) + shift.z;
#else
            const real4 point = atoms[at + first + v];
            own.x[v] = point.x + shift.x;
            own.y[v] = point.y + shift.y;
            own.z[v] = point.z + shift.z;
#endif
            own.sum[v] = 0;
        }
        const int j = tile * TILE, j_end = j + counts[tile];
        // Where two atoms stand at the same place there is no energy, which tells the host to look for them.
        realv closest[VECTORS];
        if (tile == own_tile) {
            for (int v = 0; v < VECTORS; ++v) closest[v] = 0;
            add_tile(&own, closest, atoms + at, inv_born + at, j, j_end, ITSELF, inv_inside, inv_outside, kappa);
            for (int v = 0; v < VECTORS; ++v) total[v] += CHOOSE((real)0, (real)NAN, closest[v] > (realv)1);
        } else if (box_gap2(shift, extent, extents[box + tile]) < TOUCHING_GAP2) {
            for (int v = 0; v < VECTORS; ++v) closest[v] = MAXFLOAT;
            add_tile(&own, closest, atoms + at, inv_born + at, j, j_end, TOUCHING, inv_inside, inv_outside, kappa);
            for (int v = 0; v < VECTORS; ++v) total[v] += CHOOSE((real)0, (real)NAN, closest[v] < (realv)CLOSEST_R2);
        } else {
            add_tile(&own, closest, atoms + at, inv_born + at, j, j_end, APART, inv_inside, inv_outside, kappa);
        }
        #pragma unroll
        for (int v = 0; v < VECTORS; ++v) total[v] += own.sum[v];
    }
    global real *own_potential = potential + ((size_t)conformation * n_chunks + chunk) * n_slots;
    #pragma unroll
    for (int v = 0; v < VECTORS; ++v) {
#if !SCREENED
        total[v] = -gb_energy(total[v], inv_outside, inv_inside);
#endif
        STORE(total[v], first + v * WIDTH, own_potential);
    }
}
