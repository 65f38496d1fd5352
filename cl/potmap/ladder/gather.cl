// Gather: one work-item per point sums over all atoms in global memory. No other work-item writes to the point, so no
// atomics are needed.
#include "common/scalar.clh"
#include "potmap/law.clh"

kernel void potmap_gather(
    MAP_PARAMETERS,
    global const real4 *restrict atoms)  // (n_atoms) x, y, z [A], charge
{
    const int i = get_global_id(0), j = get_global_id(1), k = get_global_id(2);
    if (i >= nx || j >= ny) return;
    const real own_x = x[i], own_y = y[j], own_z = z[k];
    const int point = (k * ny + j) * nx + i, n_points = nz * ny * nx;
    real total[1 + 3 * FIELD];
    for (int c = 0; c <= 3 * FIELD; ++c) total[c] = map[c * n_points + point];
    for (int first = 0; first < n_atoms; first += RUN) {
        real sum[1 + 3 * FIELD] = {0};
        const int end = min(first + RUN, n_atoms);
        for (int a = first; a < end; ++a) {
            const real4 atom = atoms[a];
            const real dx = own_x - atom.x, dy = own_y - atom.y, dz = own_z - atom.z;
            const real r2 = dx * dx + dy * dy + dz * dz;
            real slope;
            sum[0] += atom.w * unit_potential_and_slope(r2, &law, &slope);
#if FIELD
            slope *= atom.w;
            sum[1] += slope * dx;
            sum[2] += slope * dy;
            sum[3] += slope * dz;
#endif
        }
        for (int c = 0; c <= 3 * FIELD; ++c) total[c] += sum[c];
    }
    for (int c = 0; c <= 3 * FIELD; ++c) map[c * n_points + point] = total[c];
}
