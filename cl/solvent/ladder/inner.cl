// Inner loop on the device: the host loops over i and launches this kernel n times; each work-item computes one pair
// (i, j). The host reads the contributions to row i and sums them, skipping j = i.
#include "common/real.clh"
#include "solvent/term.clh"

kernel void hct_row(
    global const int *restrict config,    // n_atoms, i
    const Reaches reaches,
    NECK_PARAMETERS
    global const real4 *restrict atoms,    // Spheres, solvent/term.clh
    global const real *restrict rho,
    global real *restrict contributions)  // (n_atoms) of each j to the Born integral of atom i [1/A]
{
    const int j = get_global_id(0), n_atoms = config[0], i = config[1];
    if (j >= n_atoms) return;
    const Spheres all = {reaches, NECKS_GIVEN, atoms, rho};
    const Own own = own_atom(i, &all);
    contributions[j] = born_term(&own, j, &all);
}
