// The double loop over atoms as it stands in PELE, compiled, run by one work-item: the baseline of every speed-up.
#include "common/real.clh"
#include "physics/gb_radius.clh"
#include "physics/hct.clh"

kernel void born_radii_sequential(
    const int n_atoms,
    const int first_row,                  // rows to compute: a sample of them times a large system
    const int last_row,
    const real4 radius_constants,                      // physics/gb_radius.clh
    global const real4 *restrict atoms,   // (n_atoms) x, y, z, scaled radius [A]
    global const real *restrict rho,      // (n_atoms) offset radius [A]
    global const real *restrict radii,    // (n_atoms) intrinsic radius [A]
    global real *restrict psi,            // (n_atoms)
    global real *restrict born)           // (n_atoms) Born radius [A]
{
    for (int i = first_row; i < last_row; ++i) {
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
}
