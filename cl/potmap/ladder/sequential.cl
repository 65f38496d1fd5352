// One work-item for the whole map. It loops over slices and atoms, then over all points of the slice, and computes dz^2
// and dy^2 once.
#include "common/scalar.clh"
#include "potmap/law.clh"

kernel void potmap_sequential(
    MAP_PARAMETERS,
    global const real4 *restrict atoms,  // (n_atoms) x, y, z [A], charge
    global real *restrict slice)         // (ny, nx) scratch: sum of one run
{
    for (int k = 0; k < nz; ++k) {
        global real *restrict sums = map + k * ny * nx;
        for (int first = 0; first < n_atoms; first += RUN) {
            for (int p = 0; p < ny * nx; ++p) slice[p] = 0;
            for (int a = first; a < min(first + RUN, n_atoms); ++a) {
                const real4 atom = atoms[a];
                const real dz = z[k] - atom.z, dz2 = dz * dz;
                for (int j = 0; j < ny; ++j) {
                    const real dy = y[j] - atom.y, dyz2 = dy * dy + dz2;
                    for (int i = 0; i < nx; ++i) {
                        const real dx = x[i] - atom.x;
                        slice[j * nx + i] += atom.w * unit_potential(dx * dx + dyz2, &law);
                    }
                }
            }
            for (int p = 0; p < ny * nx; ++p) sums[p] += slice[p];
        }
    }
}
