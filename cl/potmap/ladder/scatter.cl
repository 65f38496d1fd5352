// Scatter: one work-item per atom and slice adds to all points of the slice, with atomics.
#include "common/scalar.clh"
#include "common/atomics.clh"
#include "potmap/law.clh"

kernel void potmap_scatter(
    MAP_PARAMETERS,
    global const real4 *restrict atoms)  // (n_atoms) x, y, z [A], charge
{
    const int a = get_global_id(0), k = get_global_id(1);
    if (a >= n_atoms || k >= nz) return;
    const real4 atom = atoms[a];
    const real dz = z[k] - atom.z, dz2 = dz * dz;
    for (int j = 0; j < ny; ++j) {
        const real dy = y[j] - atom.y, dyz2 = dy * dy + dz2;
        global real *row = map + (k * ny + j) * nx;
        for (int i = 0; i < nx; ++i) {
            const real dx = x[i] - atom.x;
            atomic_add_real(row + i, atom.w * unit_potential(dx * dx + dyz2, &law));
        }
    }
}

// Adds the sums of a run to the map and clears them for the next one.
kernel void add_run(
    const int n_points,
    global real *restrict sums,  // (n_points)
    global real *restrict map)   // (n_points)
{
    const int p = get_global_id(0);
    if (p >= n_points) return;
    map[p] += sums[p];
    sums[p] = 0;
}
