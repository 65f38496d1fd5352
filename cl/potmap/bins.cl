// Atoms into the bins of potmap/cutoff.cl, in their order: potmap/sort.clh.
#include "common/real.clh"
#include "potmap/sort.clh"

// A work-item a part of the atoms.
kernel void count_bins(
    const int n_atoms, const int per_part,
    const int4 n_bins,                      // bins along x, y, z
    const real4 corner,                     // lowest corner of the first bin [A]; w = edge of a bin
    global const real *restrict positions,  // (3, n_atoms) x, y, z [A]
    global const real *restrict rests,      // (3, n_atoms) what rounding took from them, where RESTS
    global int *restrict counts,            // (n_parts, n_bins z, y, x), 0 at first
    global int2 *restrict homes)            // (n_atoms) bin of an atom, and its number among those of its part; -1 outside
{
    const int part = get_global_id(0), n_cells = n_bins.x * n_bins.y * n_bins.z;
    const int end = min(n_atoms, (part + 1) * per_part);
    global int *own = counts + (size_t)part * n_cells;
    for (int atom = part * per_part; atom < end; ++atom) {
        const int x = (int)floor((positions[atom] - corner.x + REST_OF(atom)) / corner.w);
        const int y = (int)floor((positions[n_atoms + atom] - corner.y + REST_OF(n_atoms + atom)) / corner.w);
        const int z = (int)floor((positions[2 * n_atoms + atom] - corner.z + REST_OF(2 * n_atoms + atom)) / corner.w);
        const bool inside = x >= 0 && y >= 0 && z >= 0 && x < n_bins.x && y < n_bins.y && z < n_bins.z;
        const int bin = (z * n_bins.y + y) * n_bins.x + x;
        homes[atom] = inside ? (int2)(bin, own[bin]++) : (int2)(-1, 0);
    }
}

kernel void sort_bins(
    const int n_atoms, const int per_part, const int4 n_bins,
    global const real *restrict positions, global const real *restrict rests,
    global const real *restrict charges,    // (n_atoms)
    global const int2 *restrict homes,
    global const int *restrict counts,
    global const int *restrict starts,
    global real4 *restrict atoms,           // (n_atoms) x, y, z, charge, bin after bin
    global real4 *restrict atom_rests)      // (n_atoms) the rests of x, y, z, where RESTS
{
    const int atom = get_global_id(0);
    if (atom >= n_atoms || homes[atom].x < 0) return;
    const int n_cells = n_bins.x * n_bins.y * n_bins.z;
    const int to = place_of(atom, homes[atom].x, homes[atom].y, per_part, n_cells, counts, starts);
    const int y = n_atoms + atom, z = n_atoms + y;
    atoms[to] = (real4)(positions[atom], positions[y], positions[z], charges[atom]);
#if RESTS
    atom_rests[to] = (real4)(REST_OF(atom), REST_OF(y), REST_OF(z), 0);
#endif
}
