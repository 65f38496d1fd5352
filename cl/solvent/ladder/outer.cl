// Outer loop on the device: a work-item owns atom i, loops over all j and takes the radius function itself.
#include "common/real.clh"
#include "physics/gb_radius.clh"
#include "physics/hct.clh"

kernel void born_radii_outer(
    const int n_atoms,
    const real4 radius_constants,                     // physics/gb_radius.clh
    global const real4 *restrict atoms,  // (n_atoms) x, y, z, scaled radius [A]
    global const real *restrict rho,     // (n_atoms) offset radius [A]
    global const real *restrict radii,   // (n_atoms) intrinsic radius [A]
    global real *restrict psi,           // (n_atoms)
    global real *restrict born)          // (n_atoms) Born radius [A]
{
    const int i = get_global_id(0);
    if (i >= n_atoms) return;
    const real4 own = atoms[i];
    real sum = 0;
    for (int j = 0; j < n_atoms; ++j) {
        const real4 other = atoms[j];
        const real dx = own.x - other.x, dy = own.y - other.y, dz = own.z - other.z;
        if (j != i) sum += hct_term(sqrt(dx * dx + dy * dy + dz * dz), rho[i], other.w);
    }
    psi[i] = rho[i] * sum;
    born[i] = born_radius(psi[i], rho[i], radii[i], radius_constants);
}
