// Pairs with individual Lennard-Jones parameters (NBFIX). The pair passes use the parameters of the atoms for all
// pairs; this kernel adds the difference; eq. 2 of docs/theory/energy.md. One work-item per atom of a conformation
// (third dimension) sums the pairs of that atom, after all other passes; adds to their gradient.
#include "common/real.clh"
#include "engine/arguments.clh"
#include "common/vector.clh"
#include "energy/results.clh"
#include "physics/lennard_jones.clh"

kernel void correct_lj_pairs(
    const int n_atoms,
    const int n_energies,                         // energies that precede the Born radii in the results, per atom or per tile
    const int n_results,                          // reals per conformation in the results
    const int term,                               // index in `further`
    const real step,                              // length of a coordinate unit [A]
    const real cutoff2,                           // [A^2]
    global const coordinate *restrict positions,  // (n_conformations, n_atoms, 3)
    global const int *restrict starts,            // (n_atoms + 1) index of each atom's first `partners`
    global const int *restrict partners,          // the other atom of each pair, in both directions
    global const real4 *restrict parameters,      // individual sigma^2 and 4 epsilon, then those of the passes [A^2, kcal/mol]
    global real *restrict results)                // energy/results.clh
{
    SERVES_ROWS(correct_lj_pairs)
    const int i = get_global_id(0), conformation = get_global_id(2);
    if (i >= n_atoms) return;
    const Results own = results_of(results, conformation, n_results, n_energies, n_atoms);
    global const coordinate *all = positions + 3 * (size_t)conformation * n_atoms;
    real energy = 0, gradient[3] = {0, 0, 0};
    for (int k = starts[i]; k < starts[i + 1]; ++k) {
        const real4 of = parameters[k];
        const Vector d = vector_between(all, i, partners[k], step);
        const real r2 = (real)dot_product(d, d);
        if (r2 > cutoff2) continue;
        const real inv_r2 = (real)1 / r2, s2 = of.x * inv_r2, passes_s2 = of.z * inv_r2;
        const real s6 = s2 * s2 * s2, passes_s6 = passes_s2 * passes_s2 * passes_s2;
        const real well = of.y * s6, passes_well = of.w * passes_s6;
        energy += lennard_jones(well, s6) - lennard_jones(passes_well, passes_s6);
        const real pull = (lennard_jones_pull(well, s6, 1) - lennard_jones_pull(passes_well, passes_s6, 1)) * inv_r2;
        gradient[0] -= pull * (real)d.x;
        gradient[1] -= pull * (real)d.y;
        gradient[2] -= pull * (real)d.z;
    }
#if GRADIENT
    global real *out = own.gradient + 3 * (size_t)i;
    for (int axis = 0; axis < 3; ++axis) out[axis] += gradient[axis];
#endif
    own.further[(size_t)term * n_atoms + i] = energy / 2;
}
