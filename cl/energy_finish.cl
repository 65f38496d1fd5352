// The parts of all passes added up, in the order of the atoms. A work-group owns a tile of one conformation, SHARES
// work-items a place.
#include "real.clh"
#include "energy_sums.clh"
#include "shares.clh"

#ifndef RECOIL
#error "RECOIL: 1 where the passes over pairs went by squares, else 0"
#endif
#if RECOIL
#include "squares.clh"
#endif

#ifndef GRADIENT
#error "GRADIENT: 1 for the gradient, 0 for energies alone"
#endif
#ifndef PER_ATOM
#error "PER_ATOM: 1 where the energies of single atoms are wanted, else 0"
#endif

#define TERMS_OF_ENERGY 5

kernel __attribute__((reqd_work_group_size(TILE, SHARES, 1)))
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
    const bool first = get_local_id(1) == 0, used = item < counts[tile];
    const size_t at = (size_t)conformation * n_places + i;
    // One after the other, for the host to read at once: (n_atoms or n_tiles, 5) Lennard-Jones, Coulomb, GB, GB self and
    // nonpolar energy, (n_atoms) Born radii, and (n_atoms, 3) gradient.
    const size_t n_energies = TERMS_OF_ENERGY * (PER_ATOM ? n_atoms : n_tiles);
    global real *energies = results + conformation * (n_energies + (size_t)(GRADIENT ? 4 : 1) * n_atoms);
    global real *radii = energies + n_energies, *gradient = radii + n_atoms;
    const size_t pair_step = (size_t)PAIR_SUMS * n_places;
    global const real *pairs = pair_sums + conformation * n_parts * pair_step + i;
    local real shares[SHARES * TILE];
    real terms[TERMS_OF_ENERGY] = {0, 0, 0, 0, 0};
    for (int k = 0; k < 3; ++k) {
        real sum = 0;
        // Squares leave the energies of many atoms with one of the first places.
        if (!RECOIL || item == 0) sum = share_of_parts(pairs + (size_t)k * n_places, n_parts, pair_step);
        terms[k] = (real)0.5 * add_shares(sum, shares);
    }
#if GRADIENT
    real4 pushed = 0;
#if RECOIL
    pushed = share_of_recoil(recoil, conformation, i, n_tiles);
#endif
    global const real *slopes = pairs + (size_t)GRADIENT_SUM * n_places;
    pushed.x = add_shares(pushed.x + share_of_parts(slopes, n_parts, pair_step), shares);
    pushed.y = add_shares(pushed.y + share_of_parts(slopes + n_places, n_parts, pair_step), shares);
    pushed.z = add_shares(pushed.z + share_of_parts(slopes + 2 * n_places, n_parts, pair_step), shares);
    if (first && used) vstore3(pushed.xyz, atom, gradient);
#endif
    if (used) {
        terms[3] = atom_energies[at].x;
        terms[4] = atom_energies[at].y;
        if (first) radii[atom] = born[at];
    } else
        for (int k = 0; k < 3; ++k) terms[k] = 0;
#if PER_ATOM
    if (first && used) for (int k = 0; k < TERMS_OF_ENERGY; ++k) energies[TERMS_OF_ENERGY * atom + k] = terms[k];
#else
    local real scratch[TERMS_OF_ENERGY * TILE];
    if (first) for (int k = 0; k < TERMS_OF_ENERGY; ++k) scratch[k * TILE + item] = terms[k];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (first && item < TERMS_OF_ENERGY) {
        real sum = 0;
        for (int k = 0; k < TILE; ++k) sum += scratch[item * TILE + k];
        energies[TERMS_OF_ENERGY * tile + item] = sum;
    }
#endif
}
