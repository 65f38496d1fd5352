// Flat-bottom harmonic restraints of internal coordinates: distances between two atoms or torsions of four. The energy
// is divided equally among the atoms; docs/theory/restraints.md. One work-item per atom of a conformation (third
// dimension), which computes all restraints of that atom, after all other passes; adds to their gradient.
#include "common/real.clh"
#include "engine/arguments.clh"
#include "common/vector.clh"
#include "energy/results.clh"
#include "physics/angle.clh"
#include "physics/harmonic.clh"
#include "physics/torsion.clh"

#ifndef MEMBERS
#error "MEMBERS: atoms of a restraint, 2 of a distance, 4 of a torsion"
#endif

// Energy of a restraint, and its derivative with respect to one atom. atoms: (MEMBERS); place: index of that atom among
// them
INLINE fine restraint_energy(
    global const coordinate *positions, global const int *atoms, int place, fine4 parameters, real step, Vector *by_member) {
    const Vector none = {0, 0, 0};
    fine slope;
#if MEMBERS == 2
    // parameters: k, r0, flat
    const Vector d = vector_between(positions, atoms[place], atoms[1 - place], step);
    const fine r2 = dot_product(d, d), inv_r = inverse_root(r2);
    const fine energy = flat_harmonic_energy(parameters.x, r2 * inv_r - parameters.y, parameters.z, &slope);
    *by_member = combined(slope * inv_r, d, 0, none);
#else
    // parameters: k, cosine and sine of phi0, flat
    const Torsion torsion = torsion_of(
        vector_between(positions, atoms[0], atoms[1], step), vector_between(positions, atoms[1], atoms[2], step),
        vector_between(positions, atoms[3], atoms[2], step));
    const fine away = angle_between(torsion.sine, torsion.cosine, parameters.y, parameters.z);
    const fine energy = flat_harmonic_energy(parameters.x, away, parameters.w, &slope);
    const Vector by = place == 0 ? torsion.by_i : place == 1 ? torsion.by_j : place == 2 ? torsion.by_k : torsion.by_l;
    *by_member = combined(slope, by, 0, none);
#endif
    return energy;
}

kernel void restrain_internal(
    const int n_atoms,
    const int n_energies,                         // energies that precede the Born radii in the results, per atom or per tile
    const int n_results,                          // reals per conformation in the results
    const int term,                               // index in `further`
    const real step,                              // length of a coordinate unit [A]
    global const coordinate *restrict positions,  // (n_conformations, n_atoms, 3)
    global const int *restrict atoms,             // (n_restraints, MEMBERS)
    global const fine4 *restrict parameters,      // (n_restraints)
    global const int *restrict starts,            // (n_atoms + 1) index of each atom's first `places`
    global const int *restrict places,            // indices in `atoms` at which the atom occurs
    global real *restrict results)                // energy/results.clh
{
    SERVES_ROWS(restrain_internal)
    const int i = get_global_id(0), conformation = get_global_id(2);
    if (i >= n_atoms) return;
    const Results own = results_of(results, conformation, n_results, n_energies, n_atoms);
    global const coordinate *all = positions + 3 * (size_t)conformation * n_atoms;
    fine energy = 0;
    Vector gradient = {0, 0, 0};
    for (int k = starts[i]; k < starts[i + 1]; ++k) {
        const int restraint = places[k] / MEMBERS, place = places[k] % MEMBERS;
        Vector by_own;
        energy += restraint_energy(all, atoms + MEMBERS * restraint, place, parameters[restraint], step, &by_own);
        gradient = combined(1, gradient, 1, by_own);
    }
#if GRADIENT
    global real *out = own.gradient + 3 * (size_t)i;
    out[0] += (real)gradient.x;
    out[1] += (real)gradient.y;
    out[2] += (real)gradient.z;
#endif
    own.further[(size_t)term * n_atoms + i] = (real)(energy / MEMBERS);
}
