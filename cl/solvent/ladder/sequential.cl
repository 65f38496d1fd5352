// Double loop over atoms as in PELE, compiled and run by one work-item: the baseline of every speed-up.
#include "common/real.clh"
#include "physics/gb_radius.clh"
#include "solvent/term.clh"

kernel void born_radii_sequential(
    const int n_atoms,
    const int first_row,                  // rows to compute; for large systems a sample is timed
    const int last_row,
    RADIUS_PARAMETER,                     // physics/gb_radius.clh
    const Reaches reaches,
    NECK_PARAMETERS
    global const real4 *restrict atoms,   // Spheres, solvent/term.clh
    global const real *restrict rho,
    global const real *restrict radii,    // (n_atoms) intrinsic radius [A]
    global real *restrict psi,            // (n_atoms)
    global real *restrict born)           // (n_atoms) Born radius [A]
{
    const Spheres all = {reaches, NECKS_GIVEN, atoms, rho};
    for (int i = first_row; i < last_row; ++i) {
        const Own own = own_atom(i, &all);
        real sum = 0;
        for (int j = 0; j < n_atoms; ++j)
            if (j != i) sum += born_term(&own, j, &all);
        psi[i] = rho[i] * sum;
        born[i] = born_radius(psi[i], rho[i], radii[i], constants_of(radius_constants, i));
    }
}
