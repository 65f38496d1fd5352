// Outer loop on the device: one work-item per atom i loops over all j and applies the radius function.
#include "common/real.clh"
#include "physics/gb_radius.clh"
#include "solvent/term.clh"

kernel void born_radii_outer(
    const int n_atoms,
    RADIUS_PARAMETER,                    // physics/gb_radius.clh
    const Reaches reaches,
    NECK_PARAMETERS
    global const real4 *restrict atoms,  // Spheres, solvent/term.clh
    global const real *restrict rho,
    global const real *restrict radii,   // (n_atoms) intrinsic radius [A]
    global real *restrict psi,           // (n_atoms)
    global real *restrict born)          // (n_atoms) Born radius [A]
{
    const int i = get_global_id(0);
    if (i >= n_atoms) return;
    const Spheres all = {reaches, NECKS_GIVEN, atoms, rho};
    const Own own = own_atom(i, &all);
    real sum = 0;
    for (int j = 0; j < n_atoms; ++j)
        if (j != i) sum += born_term(&own, j, &all);
    psi[i] = rho[i] * sum;
    born[i] = born_radius(psi[i], rho[i], radii[i], constants_of(radius_constants, i));
}
