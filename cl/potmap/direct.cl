// Potential and field at a few points, summed over all atoms, to measure the error of maps. Each work-item has WIDTH
// points and a part of the atoms.
#include "common/real.clh"
#include "potmap/law.clh"

kernel void direct_values(
    const Law law,
    const int n_points,                     // a multiple of WIDTH
    const int n_atoms,
    const int per_part,                     // atoms per part
    global const real *restrict points,     // (3, n_points) x, y, z [A]
    global const real *restrict atoms,      // (3, n_atoms) x, y, z [A]
    global const real *restrict charges,    // (n_atoms)
    global real *restrict values)           // (n_parts, n_points), with FIELD (n_parts, 4, n_points)
{
    const int k = WIDTH * get_global_id(0), part = get_global_id(1);
    if (k >= n_points) return;
    const realv x = LOAD(k, points), y = LOAD(k, points + n_points), z = LOAD(k, points + 2 * n_points);
    const int first = part * per_part, end = min(n_atoms, first + per_part);
    realv sum = 0, sum_x = 0, sum_y = 0, sum_z = 0;
    for (int atom = first; atom < end; ++atom) {
        const realv dx = x - atoms[atom], dy = y - atoms[n_atoms + atom], dz = z - atoms[2 * n_atoms + atom];
        realv slope;
        sum += charges[atom] * unit_potential_and_slope(dx * dx + dy * dy + dz * dz, &law, &slope);
        if (!FIELD) continue;
        const realv pull = charges[atom] * slope;
        sum_x += pull * dx, sum_y += pull * dy, sum_z += pull * dz;
    }
    global real *of_part = values + (size_t)part * n_points * (FIELD ? 4 : 1);
    STORE(sum, k, of_part);
    if (!FIELD) return;
    STORE(sum_x, k, of_part + n_points);
    STORE(sum_y, k, of_part + 2 * n_points);
    STORE(sum_z, k, of_part + 3 * n_points);
}
