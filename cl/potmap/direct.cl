// The potential at a few points over all atoms, by which the error of maps is measured. A work-item has one point and a part
// of the atoms.
#include "common/real.clh"
#include "potmap/law.clh"

kernel void potential_at(
    const Law law,
    const int n_points,
    const int n_atoms,
    const int per_part,                     // atoms of a part
    global const real4 *restrict points,    // (n_points) x, y, z [A]
    global const real4 *restrict atoms,     // (n_atoms) x, y, z [A], charge
    global real *restrict potentials)       // (n_parts, n_points)
{
    const int k = get_global_id(0), part = get_global_id(1);
    if (k >= n_points) return;
    const real4 point = points[k];
    const int first = part * per_part, end = min(n_atoms, first + per_part);
    real sum = 0;
    for (int atom = first; atom < end; ++atom) {
        const real4 other = atoms[atom];
        const real dx = point.x - other.x, dy = point.y - other.y, dz = point.z - other.z;
        sum += other.w * unit_potential(dx * dx + dy * dy + dz * dz, &law);
    }
    potentials[(size_t)part * n_points + k] = sum;
}
