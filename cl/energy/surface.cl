// Adds the LCPO surface energies to the results, and their gradient to that of the other terms, after the passes. One
// work-group per tile of a conformation (third dimension), one work-item per heavy atom.
#include "common/real.clh"
#include "engine/arguments.clh"
#include "energy/results.clh"

#ifndef TILE
#error "TILE: slots in a tile; also the size of a work-group"
#endif

kernel __attribute__((reqd_work_group_size(TILE, 1, 1)))
void add_surface(
    const int n_tiles,
    const int n_atoms,
    const int n_energies,                    // energies that precede the Born radii in the results, per atom or per tile
    const int n_results,                     // reals per conformation in the results
    const int per_atom,                      // 1 if per-atom energies are requested, else 0
    const int n_heavy,
    const int term,                          // index of the nonpolar energy among the terms
    global const int *restrict starts,       // (n_tiles + 1) index of the first heavy atom of each tile
    global const int *restrict atoms,        // (n_heavy) atom number of each
    global const real4 *restrict pulls,      // (n_conformations, n_heavy) of common/surface.cl
    global real *restrict results)           // energy/results.clh
{
    SERVES_ROWS(add_surface)
    local real scratch[TILE];
    const int item = get_local_id(0), tile = get_group_id(0), conformation = get_global_id(2), k = starts[tile] + item;
    const Results own = results_of(results, conformation, n_results, n_energies, n_atoms);
    scratch[item] = 0;
    if (k < starts[tile + 1]) {
        const real4 pull = pulls[(size_t)conformation * n_heavy + k];
        const size_t atom = atoms[k];
#if GRADIENT
        own.gradient[3 * atom] += pull.x;
        own.gradient[3 * atom + 1] += pull.y;
        own.gradient[3 * atom + 2] += pull.z;
#endif
        if (per_atom) own.energies[N_TERMS * atom + term] = pull.w;
        scratch[item] = pull.w;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item || per_atom) return;
    real sum = 0;
    for (int other = 0; other < TILE; ++other) sum += scratch[other];
    own.energies[N_TERMS * (size_t)tile + term] = sum;
}
