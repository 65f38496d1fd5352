// Born radii from Born integrals: one work-item per atom adds the parts of its integral and applies the radius
// function.
#include "common/real.clh"
#include "physics/gb_radius.clh"

kernel void born_radii(
    const int n_atoms,
    const int n_parts,
    RADIUS_PARAMETER,             // physics/gb_radius.clh
    global const real *restrict sums,   // (n_parts, n_atoms) parts of the Born integral [1/A]
    global const real *restrict rho,    // (n_atoms) offset radius [A]
    global const real *restrict radii,  // (n_atoms) intrinsic radius [A]
    global real *restrict psi,          // (n_atoms)
    global real *restrict born)         // (n_atoms) Born radius [A]
{
    const int i = get_global_id(0);
    if (i >= n_atoms) return;
    real sum = 0;
    for (int part = 0; part < n_parts; ++part) sum += sums[(size_t)part * n_atoms + i];
    psi[i] = rho[i] * sum;
    born[i] = born_radius(psi[i], rho[i], radii[i], constants_of(radius_constants, i));
}
