// Potential of charged spheres at points: at the border of a grid, and near the atoms. A work-item does WIDTH points.
#include "common/real.clh"

#define NEAREST (real)0.01  // [A] the potential is taken no closer to an atom

kernel void add_spheres(
    const int n_vectors,                   // of points
    global const real *restrict points_x,  // (n_vectors * WIDTH) from the middle of the grid [A]
    global const real *restrict points_y,
    global const real *restrict points_z,
    const int n_atoms,
    global const real4 *restrict atoms,    // (n_atoms) x, y, z from there, radius [A]
    global const real *restrict charges,   // (n_atoms) [kT/e A]
    const real kappa,                      // [1/A]
    global real *restrict potential)       // (n_vectors * WIDTH) [kT/e]
{
    const int p = get_global_id(0);
    if (p >= n_vectors) return;
    const realv px = LOAD(WIDTH * p, points_x), py = LOAD(WIDTH * p, points_y), pz = LOAD(WIDTH * p, points_z);
    realv sum = 0;
    for (int a = 0; a < n_atoms; ++a) {
        const real4 atom = atoms[a];
        const realv x = px - atom.x, y = py - atom.y, z = pz - atom.z;
        const realv r2 = fmax(x * x + y * y + z * z, (realv)(NEAREST * NEAREST));
        const realv bare = charges[a] * inverse_sqrt(r2);
        sum += kappa > 0 ? bare * exp2(kappa * LOG2_E * (atom.w - sqrt(r2))) * ((real)1 / (1 + kappa * atom.w)) : bare;
    }
    STORE(sum, WIDTH * p, potential);
}
