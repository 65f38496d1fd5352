// Molecule on the grid: edges in solvent, and nodes that ions reach. A group does a block of nodes, a work-item a node
// and the edges that lead from it.
#include "common/real.clh"
#include "pb/spheres.clh"

// Middles of edges: 1 in solvent, 0 in the molecule. origins : (3) of the grid of middles along x, y and z
kernel void mark_middles(
    const ColourGrid grid, global const total4 *restrict origins, global const total4 *restrict spacing, SPHERES(atom),
    SPHERES(probe), global uchar *restrict x_codes, global uchar *restrict y_codes, global uchar *restrict z_codes)
{
    int i, j, k;
    if (!own_node(grid, &i, &j, &k)) return;
    const size_t at = node_at(grid, i, j, k);
    for (int axis = 0; axis < 3; ++axis) {
        const int is_solute = is_covered(i, j, k, origins[axis], spacing[0], SPHERES_PASSED(atom))
                           && !is_covered(i, j, k, origins[axis], spacing[0], SPHERES_PASSED(probe));
        (axis == 0 ? x_codes : axis == 1 ? y_codes : z_codes)[at] = !is_solute;
    }
}

// Counts the pieces in solvent, of 64, of each edge. origins : (1) of the grid
kernel void cut_edges(
    const ColourGrid grid, global const total4 *restrict origins, global const total4 *restrict spacing, SPHERES(atom),
    SPHERES(probe), global uchar *restrict x_codes, global uchar *restrict y_codes, global uchar *restrict z_codes)
{
    int i, j, k;
    if (!own_node(grid, &i, &j, &k)) return;
    const size_t at = node_at(grid, i, j, k);
    for (int axis = 0; axis < 3; ++axis) {
        ulong solvent = ~covered_pieces(axis, i, j, k, origins[0], spacing[0], SPHERES_PASSED(atom));
        if (solvent != ULONG_MAX) {
            solvent |= covered_pieces(axis, i, j, k, origins[0], spacing[0], SPHERES_PASSED(probe));
        }
        (axis == 0 ? x_codes : axis == 1 ? y_codes : z_codes)[at] = (uchar)popcount(solvent);
    }
}

// Marks the nodes that ions reach.
kernel void mark_access(
    const ColourGrid grid, global const total4 *restrict origins, global const total4 *restrict spacing, SPHERES(atom),
    global uchar *restrict accesses)
{
    int i, j, k;
    if (!own_node(grid, &i, &j, &k)) return;
    accesses[node_at(grid, i, j, k)] = !is_covered(i, j, k, origins[0], spacing[0], SPHERES_PASSED(atom));
}

// Counts the nine middles within a step of each middle: 10 times how many exist, plus how many are in solvent.
kernel void count_middles(
    const ColourGrid grid, global const uchar *restrict x_codes, global const uchar *restrict y_codes,
    global const uchar *restrict z_codes, global uchar *restrict x_counts, global uchar *restrict y_counts,
    global uchar *restrict z_counts)
{
    int own[3];
    if (!own_node(grid, own, own + 1, own + 2)) return;
    const int ends[3] = {grid.nx, grid.ny, grid.nz};
    for (int axis = 0; axis < 3; ++axis) {
        int count = 0, solvent = 0;
        for (int other = 0; other < 3; ++other) {
            for (int back = 0; back <= (other != axis); ++back) {
                for (int ahead = 0; ahead <= (other != axis); ++ahead) {
                    int node[3] = {own[0], own[1], own[2]};
                    node[other] -= back;
                    node[axis] += ahead;
                    if (node[other] < 0 || node[axis] >= ends[axis]) continue;
                    const size_t at = node_at(grid, node[0], node[1], node[2]);
                    ++count;
                    solvent += (other == 0 ? x_codes : other == 1 ? y_codes : z_codes)[at];
                }
            }
        }
        (axis == 0 ? x_counts : axis == 1 ? y_counts : z_counts)[node_at(grid, own[0], own[1], own[2])] =
            (uchar)(10 * count + solvent);
    }
}

// Coefficients of edges by a spline of a degree, 3 or 7. origins : (1) of the grid; constants : solute, solvent dielectric; then
// factors of the three axes
kernel void spline_edges(
    const ColourGrid grid, global const total4 *restrict origins, global const total4 *restrict spacing, SPHERES(atom),
    const int degree, global const total4 *restrict windows, global const total *restrict constants,
    global total *restrict x_edges, global total *restrict y_edges, global total *restrict z_edges)
{
    int i, j, k;
    if (!own_node(grid, &i, &j, &k)) return;
    const size_t at = node_at(grid, i, j, k);
    for (int axis = 0; axis < 3; ++axis) {
        const total share =
            spline_product(i, j, k, axis, origins[0], spacing[0], degree, windows[0], SPHERES_PASSED(atom));
        (axis == 0 ? x_edges : axis == 1 ? y_edges : z_edges)[at] =
            (constants[0] + (constants[1] - constants[0]) * share) * constants[2 + axis];
    }
}

// Access of ions to the nodes by a spline.
kernel void spline_access(
    const ColourGrid grid, global const total4 *restrict origins, global const total4 *restrict spacing, SPHERES(atom),
    const int degree, global const total4 *restrict windows, global total *restrict accesses)
{
    int i, j, k;
    if (!own_node(grid, &i, &j, &k)) return;
    accesses[node_at(grid, i, j, k)] =
        spline_product(i, j, k, -1, origins[0], spacing[0], degree, windows[0], SPHERES_PASSED(atom));
}
