// Inner loop on the device: the host walks i and launches this kernel n times; a work-item computes one pair (i, j).
// The host reads the contributions of row i back and sums them, skipping j = i.
#include "common/real.clh"
#include "physics/hct.clh"

kernel void hct_row(
    global const int *restrict config,    // n_atoms, i
    global const real4 *restrict atoms,   // (n_atoms) x, y, z, scaled radius [A]
    global const real *restrict rho,      // (n_atoms) offset radius [A]
    global real *restrict contributions)  // (n_atoms) of each j to the Born integral of atom i [1/A]
{
    const int j = get_global_id(0), n_atoms = config[0], i = config[1];
    if (j >= n_atoms) return;
    const real4 own = atoms[i], other = atoms[j];
    const real dx = own.x - other.x, dy = own.y - other.y, dz = own.z - other.z;
    contributions[j] = hct_term(sqrt(dx * dx + dy * dy + dz * dz), rho[i], other.w);
}
