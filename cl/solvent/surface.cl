// Copies the LCPO surface energies to the column of nonpolar energies; solvent/atoms.cl. One work-item per heavy atom
// of a conformation (third dimension).
#include "common/real.clh"

kernel void keep_surface(
    const int n_atoms,
    const int n_heavy,
    const int n_columns,                     // columns of the results
    const int column,                        // column of the nonpolar energies
    global const int *restrict atoms,        // (n_heavy) atom number of each
    global const real4 *restrict pulls,      // (n_conformations, n_heavy) of common/surface.cl
    global real *restrict results)           // (n_conformations, n_columns, n_atoms)
{
    const int k = get_global_id(0), conformation = get_global_id(2);
    if (k >= n_heavy) return;
    results[((size_t)conformation * n_columns + column) * n_atoms + atoms[k]] =
        pulls[(size_t)conformation * n_heavy + k].w;
}
