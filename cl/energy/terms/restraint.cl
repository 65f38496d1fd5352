// Harmonic positional restraints: k |x - x0|^2 of each atom. A work-item an atom of one conformation (third dimension),
// after all other passes, whose gradient it adds to.
#include "common/real.clh"
#include "common/position.clh"
#include "energy/results.clh"

kernel void restrain(
    const int n_atoms,
    const int n_rows,                              // energies before the Born radii in the results, of atoms or tiles
    const int term,                                // index in `further`
    const real step,                               // A of a coordinate's unit
    global const coordinate *restrict positions,   // (n_conformations, n_atoms, 3)
    global const coordinate *restrict references,  // (n_atoms, 3) x0
    global const real *restrict constants,         // (n_atoms) k [kcal/mol/A^2]
    global real *restrict results)                 // energy/results.clh
{
    const int i = get_global_id(0), conformation = get_global_id(2);
    if (i >= n_atoms) return;
    const Results own = results_of(results, conformation, n_rows, n_atoms);
    global const coordinate *here = positions + 3 * ((size_t)conformation * n_atoms + i);
    const real k = constants[i];
    real r2 = 0;
    for (int axis = 0; axis < 3; ++axis) {
        const real away = coordinate_difference(here[axis], references[3 * (size_t)i + axis], step);
        r2 += away * away;
#if GRADIENT
        own.gradient[3 * (size_t)i + axis] += (real)2 * k * away;
#endif
    }
    own.further[(size_t)term * n_atoms + i] = k * r2;
}
