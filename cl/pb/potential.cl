// Potential of charged spheres at nodes: at the border of a grid, and near the atoms.
#include "common/real.clh"
#include "common/total.clh"
#include "pb/cells.clh"
#include "pb/nodes.clh"

#define NEAREST (real)0.01  // [A] the potential is taken no closer to an atom

// Lists the nodes of a grid's six faces, each once: of the two ends along z, then y, then x. A work-item a node.
kernel void list_border(
    const int nx, const int ny, const int nz, const int n_nodes,
    global int *restrict nodes)            // (n_nodes, 3) i, j, k
{
    const int t = get_global_id(0), along_z = 2 * nx * ny, along_y = 2 * nx * (nz - 2);
    if (t >= n_nodes) return;
    const int u = t - along_z, v = u - along_y;
    const int i = t < along_z ? t % nx : u < along_y ? u % nx : v % 2 * (nx - 1);
    const int j = t < along_z ? t / nx % ny : u < along_y ? u / nx % 2 * (ny - 1) : 1 + v / 2 % (ny - 2);
    const int k = t < along_z ? t / (nx * ny) * (nz - 1) : u < along_y ? 1 + u / (2 * nx) : 1 + v / (2 * (ny - 2));
    nodes[3 * t] = i;
    nodes[3 * t + 1] = j;
    nodes[3 * t + 2] = k;
}

// Places nodes as points from the middle of the grid. A work-item a point.
kernel void place_nodes(
    const int n_points, const int n_nodes,
    global const int *restrict nodes,      // (n_nodes, 3) i, j, k; points beyond them are 0
    global const total4 *restrict place,   // (2) first node from the middle, spacing [A]
    global real *restrict points_x,        // (n_points) [A]
    global real *restrict points_y,
    global real *restrict points_z)
{
    const int t = get_global_id(0);
    if (t >= n_points) return;
    const int is_node = t < n_nodes, at = is_node ? 3 * t : 0;
    points_x[t] = is_node ? (real)(place[0].x + nodes[at] * place[1].x) : 0;
    points_y[t] = is_node ? (real)(place[0].y + nodes[at + 1] * place[1].y) : 0;
    points_z[t] = is_node ? (real)(place[0].z + nodes[at + 2] * place[1].z) : 0;
}

// Sums the potential over atoms. A work-item does WIDTH points.
kernel void sum_spheres(
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

// Adds values at nodes, each once, to an array. A work-item a node.
kernel void add_to_nodes(
    const ColourGrid grid, const int n_nodes, global const int *restrict nodes, global const real *restrict values,
    global total *restrict array)
{
    const int t = get_global_id(0);
    if (t < n_nodes) array[node_at(grid, nodes[3 * t], nodes[3 * t + 1], nodes[3 * t + 2])] += values[t];
}
