// Flat-bottom harmonic restraint of a centre of mass; docs/theory/restraints.md. One work-item per atom of a
// conformation (third dimension), after all other passes; adds to their gradient. Each work-item of the restrained
// group computes the centre itself: groups are small, and this saves a launch.
#include "common/real.clh"
#include "engine/arguments.clh"
#include "common/position.clh"
#include "common/vector.clh"
#include "energy/results.clh"
#include "physics/harmonic.clh"

kernel void restrain_center(
    const int n_atoms,
    const int n_energies,                         // energies that precede the Born radii in the results, per atom or per tile
    const int n_results,                          // reals per conformation in the results
    const int term,                               // index in `further`
    const real step,                              // length of a coordinate unit [A]
    global const coordinate *restrict positions,  // (n_conformations, n_atoms, 3)
    const int n_members,
    global const int *restrict members,           // atoms of the group
    global const fine *restrict weights,          // (n_atoms) weight of an atom in the centre, 0 for all others
    global const fine4 *restrict parameters,      // k [kcal/mol/A^2], c0 relative to the origin of positions [A]
    const real flat,                              // half width of the flat bottom [A]
    global real *restrict results)                // energy/results.clh
{
    SERVES_ROWS(restrain_center)
    const int i = get_global_id(0), conformation = get_global_id(2);
    if (i >= n_atoms) return;
    const Results own = results_of(results, conformation, n_results, n_energies, n_atoms);
    global real *energy = own.further + (size_t)term * n_atoms + i;
    *energy = 0;
    const fine weight = weights[i];
    if (!(weight > 0)) return;
    global const coordinate *all = positions + 3 * (size_t)conformation * n_atoms;
    fine center[3] = {0, 0, 0};
    for (int k = 0; k < n_members; ++k) {
        const int atom = members[k];
        for (int axis = 0; axis < 3; ++axis)
            center[axis] += weights[atom] * ((fine)all[3 * (size_t)atom + axis] * step);
    }
    const fine4 own_parameters = parameters[0];
    const Vector away = {
        center[0] - own_parameters.y, center[1] - own_parameters.z, center[2] - own_parameters.w};
    const fine r2 = dot_product(away, away), inv_r = inverse_root(r2);
    fine slope;
    *energy = (real)(weight * flat_harmonic_energy(own_parameters.x, r2 * inv_r, flat, &slope));
#if GRADIENT
    const fine by = weight * slope * inv_r;
    global real *out = own.gradient + 3 * (size_t)i;
    out[0] += (real)(by * away.x);
    out[1] += (real)(by * away.y);
    out[2] += (real)(by * away.z);
#endif
}
