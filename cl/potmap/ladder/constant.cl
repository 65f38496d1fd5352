// One work-item per point of one slice; the atoms are in constant memory, with precomputed dz^2 to this slice.
#include "common/scalar.clh"
#include "potmap/law.clh"

kernel void potmap_constant(
    MAP_PARAMETERS,
    const int k,                           // the slice
    constant const real4 *restrict atoms)  // (n_atoms) x, y [A], dz^2 [A^2], charge
{
    const int i = get_global_id(0), j = get_global_id(1);
    if (i >= nx || j >= ny) return;
    const real own_x = x[i], own_y = y[j];
    const int point = (k * ny + j) * nx + i;
    real total = map[point];
    for (int first = 0; first < n_atoms; first += RUN) {
        real sum = 0;
        const int end = min(first + RUN, n_atoms);
        for (int a = first; a < end; ++a) {
            const real4 atom = atoms[a];
            const real dx = own_x - atom.x, dy = own_y - atom.y;
            sum += atom.w * unit_potential(dx * dx + dy * dy + atom.z, &law);
        }
        total += sum;
    }
    map[point] = total;
}
