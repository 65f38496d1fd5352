// Potential of charged spheres at nodes: at the boundary of a grid, and near the atoms.
#include "common/real.clh"
#include "common/total.clh"
#include "pb/cells.clh"
#include "pb/nodes.clh"

// Several molecules on grids of the same shape are rows, along the last dimension of a launch. ranges : (rows) first
// node and number of nodes of a row, first vector and number of vectors of its points
#define NEAREST (real)0.01  // [A] minimum distance from an atom at which the potential is evaluated

// Lists the nodes of a grid's six faces, each once: both ends along z, then y, then x. One work-item per node.
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

// Coordinates of nodes relative to the centre of the grid. One work-item per point.
kernel void place_nodes(
    global const int4 *restrict ranges,
    global const int *restrict nodes,      // (n_nodes, 3) i, j, k; points beyond those of a row are 0
    global const total4 *restrict places,  // (rows, 2) first node relative to the centre, spacing [A]
    global real *restrict points_x,        // (n_vectors * WIDTH) [A]
    global real *restrict points_y,
    global real *restrict points_z)
{
    const int t = get_global_id(0);
    const int4 range = ranges[get_global_id(2)];
    if (t >= range.w * WIDTH) return;
    const int is_node = t < range.y, at = is_node ? 3 * (range.x + t) : 0, point = range.z * WIDTH + t;
    global const total4 *const place = places + 2 * get_global_id(2);
    points_x[point] = is_node ? (real)(place[0].x + nodes[at] * place[1].x) : 0;
    points_y[point] = is_node ? (real)(place[0].y + nodes[at + 1] * place[1].y) : 0;
    points_z[point] = is_node ? (real)(place[0].z + nodes[at + 2] * place[1].z) : 0;
}

// Sums the potential over atoms. One work-item per WIDTH points, or on GPUs per several points, which share the load of
// an atom.
#define VECTORS (WIDTH == 1 ? 4 : 1)  // pele_ocl/pb/border.py
kernel void sum_spheres(
    global const int4 *restrict ranges,
    global const real *restrict points_x,  // (n_vectors * WIDTH) relative to the centre of the grid [A]
    global const real *restrict points_y,
    global const real *restrict points_z,
    global const int *restrict first_atoms,  // (rows + 1) index of each row's first atom
    global const real4 *restrict atoms,    // (n_atoms) x, y, z relative to the centre, radius [A]
    global const real *restrict charges,   // (n_atoms) [kT/e A]
    const real kappa,                      // [1/A]
    global real *restrict potential)       // (n_vectors * WIDTH) [kT/e]
{
    const int4 range = ranges[get_global_id(2)];
    const int n_items = (range.w + VECTORS - 1) / VECTORS, end = first_atoms[get_global_id(2) + 1];
    if (get_global_id(0) >= n_items) return;
    realv px[VECTORS], py[VECTORS], pz[VECTORS], sums[VECTORS];
#pragma unroll
    for (int v = 0; v < VECTORS; ++v) {
        const int p = range.z + min((int)get_global_id(0) + v * n_items, range.w - 1);
        px[v] = LOAD(WIDTH * p, points_x);
        py[v] = LOAD(WIDTH * p, points_y);
        pz[v] = LOAD(WIDTH * p, points_z);
        sums[v] = 0;
    }
    for (int a = first_atoms[get_global_id(2)]; a < end; ++a) {
        const real4 atom = atoms[a];
#pragma unroll
        for (int v = 0; v < VECTORS; ++v) {
            const realv x = px[v] - atom.x, y = py[v] - atom.y, z = pz[v] - atom.z;
            const realv r2 = fmax(x * x + y * y + z * z, (realv)(NEAREST * NEAREST));
            const realv bare = charges[a] * inverse_sqrt(r2);
            sums[v] += kappa > 0
                ? bare * exp2(kappa * LOG2_E * (atom.w - sqrt(r2))) * ((real)1 / (1 + kappa * atom.w)) : bare;
        }
    }
#pragma unroll
    for (int v = 0; v < VECTORS; ++v) {
        const int t = get_global_id(0) + v * n_items;
        if (t < range.w) STORE(sums[v], WIDTH * (range.z + t), potential);
    }
}

// Adds values to an array at nodes, each listed once. One work-item per node.
kernel void add_to_nodes(
    const ColourGrid grid, global const int4 *restrict ranges, global const int *restrict nodes,
    global const real *restrict values, global total *restrict array)
{
    const int t = get_global_id(0);
    const int4 range = ranges[get_global_id(2)];
    if (t >= range.y) return;
    TAKE_ROW(own, grid, get_global_id(2));
    global const int *const node = nodes + 3 * (range.x + t);
    array[node_at(own, node[0], node[1], node[2])] += values[range.z * WIDTH + t];
}
