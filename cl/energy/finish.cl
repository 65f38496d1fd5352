// Adds up the parts of all passes, in the order of the atoms. A work-group owns a tile of one conformation.
#include "common/real.clh"
#include "energy/sums.clh"

#ifndef TILE
#error "TILE: atoms in a tile; also the size of a work-group"
#endif
#ifndef PER_ATOM
#error "PER_ATOM: 1 where the energies of single atoms are wanted, else 0"
#endif
#ifndef BEGUN
#error "BEGUN: 1 where the gradient in the results has begun, to which that of the passes is added; else 0"
#endif

#include "energy/results.clh"

kernel __attribute__((reqd_work_group_size(TILE, 1, 1)))
void finish(
    const int n_tiles,
    const int n_atoms,
    const int n_parts,
    global const real *restrict pair_sums,      // (n_conformations, n_parts, PAIR_SUMS, n_slots)
    global const real4 *restrict singles,       // (n_conformations, n_slots) cl/energy/terms.clh
    global const real *restrict born,           // (n_conformations, n_slots) [A]
    global const int *restrict order,           // (n_slots) the atom of each slot
    global const int *restrict counts,          // (n_tiles) atoms in the tile
    global real *restrict results)              // cl/energy/results.clh
{
    local real scratch[N_TERMS * TILE];
    const int item = get_local_id(0), i = get_global_id(0), conformation = get_global_id(2), tile = i / TILE;
    const int n_slots = n_tiles * TILE, atom = order[i];
    const size_t at = (size_t)conformation * n_slots + i;
    const Results own = results_of(results, conformation, PER_ATOM ? n_atoms : n_tiles, n_atoms);
    global const real *pairs = pair_sums + (size_t)conformation * n_parts * PAIR_SUMS * n_slots + i;
    real sums[PAIR_SUMS], terms[N_TERMS] = {0, 0, 0, 0, 0};
    for (int k = 0; k < (GRADIENT ? PAIR_SUMS - 1 : GRADIENT_SUM); ++k)
        sums[k] = sum_of_parts(pairs + (size_t)k * n_slots, 0, n_parts, 1, (size_t)PAIR_SUMS * n_slots);
    if (item < counts[tile]) {
        for (int k = 0; k < 3; ++k) terms[k] = (real)0.5 * sums[k];
        terms[3] = singles[at].z;
        terms[4] = singles[at].w;
        own.radii[atom] = born[at];
#if GRADIENT
        global real *gradient = own.gradient + 3 * (size_t)atom;
        for (int k = 0; k < 3; ++k) gradient[k] = sums[GRADIENT_SUM + k] + (BEGUN ? gradient[k] : (real)0);
#endif
#if PER_ATOM
        for (int k = 0; k < N_TERMS; ++k) own.energies[N_TERMS * (size_t)atom + k] = terms[k];
#endif
    }
#if !PER_ATOM
    keep_tile_energies(terms, true, tile, scratch, own.energies);
#endif
}
