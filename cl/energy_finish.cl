// The parts of all passes added up, in the order of the atoms. A work-group owns a tile of one conformation, a work-item
// a place.
#include "real.clh"
#include "energy_sums.clh"

#ifndef RECOIL
#error "RECOIL: 1 where the passes over pairs went by squares, else 0"
#endif
#if RECOIL
#include "squares.clh"
#endif

#ifndef TILE
#error "TILE: atoms in a tile, a power of two; also the size of a work-group"
#endif
#ifndef GRADIENT
#error "GRADIENT: 1 for the gradient, 0 for energies alone"
#endif
#ifndef PER_ATOM
#error "PER_ATOM: 1 where the energies of single atoms are wanted, else 0"
#endif

#define TERMS_OF_ENERGY 5

INLINE real sum_parts(global const real *parts, int n_parts, size_t step) {
    real sum = 0;
    for (int part = 0; part < n_parts; ++part) sum += parts[part * step];
    return sum;
}

kernel __attribute__((reqd_work_group_size(TILE, 1, 1)))
void finish(
    const int n_tiles,
    const int n_atoms,
    const int n_parts,
    global const real *restrict pair_sums,      // (n_conformations, n_parts, PAIR_SUMS, n_places)
    global const real2 *restrict atom_energies, // (n_conformations, n_places) GB self, nonpolar [kcal/mol]
    global const real *restrict born,           // (n_conformations, n_places) [A]
    global const int *restrict order,           // (n_places) which atom stands at each place
    global const int *restrict counts,          // (n_tiles) atoms in the tile
#if RECOIL
    global const real4 *restrict recoil,        // (n_conformations, n_rows / 2, n_places)
#endif
    global real *restrict results)              // (n_conformations, see below)
{
    const int item = get_local_id(0), i = get_global_id(0), conformation = get_global_id(2), tile = i / TILE;
    const int n_places = n_tiles * TILE;
    const int atom = order[i];
    const bool used = item < counts[tile];
    const size_t at = (size_t)conformation * n_places + i;
    // One after the other, for the host to read at once: (n_atoms or n_tiles, 5) Lennard-Jones, Coulomb, GB, GB self and
    // nonpolar energy, (n_atoms) Born radii, and (n_atoms, 3) gradient.
    const size_t n_energies = TERMS_OF_ENERGY * (PER_ATOM ? n_atoms : n_tiles);
    global real *energies = results + conformation * (n_energies + (size_t)(GRADIENT ? 4 : 1) * n_atoms);
    global real *radii = energies + n_energies, *gradient = radii + n_atoms;
    const size_t pair_step = (size_t)PAIR_SUMS * n_places;
    global const real *pairs = pair_sums + conformation * n_parts * pair_step + i;
    real terms[TERMS_OF_ENERGY] = {0, 0, 0, 0, 0};
    if (used) {
        for (int k = 0; k < 3; ++k)
            terms[k] = (real)0.5 * sum_parts(pairs + (size_t)k * n_places, n_parts, pair_step);
        terms[3] = atom_energies[at].x;
        terms[4] = atom_energies[at].y;
        radii[atom] = born[at];
#if GRADIENT
        real own[3];
        for (int k = 0; k < 3; ++k) own[k] = sum_parts(pairs + (size_t)(GRADIENT_SUM + k) * n_places, n_parts, pair_step);
#if RECOIL
        const real4 met = sum_recoil(recoil, conformation, i, n_tiles);
        own[0] += met.x;
        own[1] += met.y;
        own[2] += met.z;
#endif
        for (int k = 0; k < 3; ++k) gradient[3 * atom + k] = own[k];
#endif
    }
#if PER_ATOM
    if (used) for (int k = 0; k < TERMS_OF_ENERGY; ++k) energies[TERMS_OF_ENERGY * atom + k] = terms[k];
#else
    local real scratch[TERMS_OF_ENERGY * TILE];
    for (int k = 0; k < TERMS_OF_ENERGY; ++k) scratch[k * TILE + item] = terms[k];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int half_size = TILE / 2; half_size > 0; half_size /= 2) {
        if (item < half_size)
            for (int k = 0; k < TERMS_OF_ENERGY; ++k) scratch[k * TILE + item] += scratch[k * TILE + item + half_size];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (item < TERMS_OF_ENERGY) energies[TERMS_OF_ENERGY * tile + item] = scratch[item * TILE];
#endif
}
