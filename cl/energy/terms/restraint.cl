// Flat-bottom harmonic positional restraints; docs/theory/restraints.md. One work-item per atom of a conformation
// (third dimension), after all other passes; adds to their gradient.
#include "common/real.clh"
#include "engine/arguments.clh"
#include "common/position.clh"
#include "common/vector.clh"
#include "energy/results.clh"
#include "physics/harmonic.clh"

kernel void restrain(
    const int n_atoms,
    const int n_energies,                          // energies that precede the Born radii in the results, per atom or per tile
    const int n_results,                           // reals per conformation in the results
    const int term,                                // index in `further`
    const real step,                               // length of a coordinate unit [A]
    global const coordinate *restrict positions,   // (n_conformations, n_atoms, 3)
    global const coordinate *restrict references,  // (n_atoms, 3) x0
    global const real *restrict constants,         // (n_atoms) k [kcal/mol/A^2]
    const real flat,                               // half width of the flat bottom [A]
    global real *restrict results)                 // energy/results.clh
{
    SERVES_ROWS(restrain)
    const int i = get_global_id(0), conformation = get_global_id(2);
    if (i >= n_atoms) return;
    const Results own = results_of(results, conformation, n_results, n_energies, n_atoms);
    global const coordinate *here = positions + 3 * ((size_t)conformation * n_atoms + i);
    global const coordinate *there = references + 3 * (size_t)i;
    real away[3], r2 = 0;
    for (int axis = 0; axis < 3; ++axis) {
        away[axis] = coordinate_difference(here[axis], there[axis], step);
        r2 += away[axis] * away[axis];
    }
    const real inv_r = (real)inverse_root(r2);
    fine slope;
    own.further[(size_t)term * n_atoms + i] = (real)flat_harmonic_energy(constants[i], r2 * inv_r, flat, &slope);
#if GRADIENT
    for (int axis = 0; axis < 3; ++axis) own.gradient[3 * (size_t)i + axis] += (real)slope * inv_r * away[axis];
#endif
}
