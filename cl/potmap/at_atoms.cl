// Potential at atoms of a molecule, from all its other charges, in several frames. One work-item per atom and frame
// sums over the atoms in order, in runs.
#include "common/real.clh"
#include "potmap/law.clh"

kernel void potential_at_atoms(
    const Law law,
    const int n_atoms,
    const int n_chosen,
    global const int *restrict chosen,    // (n_chosen)
    global const real4 *restrict atoms,   // (n_frames, n_atoms) x, y, z [A], charge
    global real *restrict potentials)     // (n_frames, n_chosen)
{
    const int k = get_global_id(0), frame = get_global_id(1);
    if (k >= n_chosen) return;
    global const real4 *of_frame = atoms + (size_t)frame * n_atoms;
    const int own = chosen[k];
    const real4 point = of_frame[own];
    real total = 0;
    for (int first = 0; first < n_atoms; first += RUN) {
        const int end = min(n_atoms, first + RUN);
        real sum = 0;
        for (int atom = first; atom < end; ++atom) {
            const real4 other = of_frame[atom];
            if (atom == own || other.w == 0) continue; // an uncharged site may coincide with the atom
            const real dx = point.x - other.x, dy = point.y - other.y, dz = point.z - other.z;
            sum += other.w * unit_potential(dx * dx + dy * dy + dz * dz, &law);
        }
        total += sum;
    }
    potentials[(size_t)frame * n_chosen + k] = total;
}
