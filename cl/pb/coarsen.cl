// Coefficients of a coarse grid from those of the fine grid. One work-item per plane (CPUs) or per few nodes.
#include "common/real.clh"
#include "pb/operator.clh"

// Index of the fine node at an offset (a, b, c) of -1 to 1 steps from node `at`, which has even i, j, k.
INLINE NodeIndex beside(ColourGrid fine, NodeIndex at, int a, int b, int c) {
    return at + ((a + b + c) & 1) * nodes_of_a_colour(fine) + ((long)c * fine.ny + b) * fine.row - (a < 0);
}

// A coarse edge: two fine edges in series, summed over the nine parallel lines around it with the weights 1/2, 1, 1/2.
INLINE real coarse_edge(ColourGrid fine, int axis, NodeIndex at, Edges edges) {
    real sum = 0;
#pragma unroll
    for (int b = -1; b < 2; ++b) {
#pragma unroll
        for (int a = -1; a < 2; ++a) {
            const int x = axis == 0 ? 0 : a, y = axis == 0 ? a : axis == 1 ? 0 : b, z = axis == 2 ? 0 : b;
            const real first = coefficient(edges, axis, beside(fine, at, x, y, z));
            const real second =
                coefficient(edges, axis, beside(fine, at, x + (axis == 0), y + (axis == 1), z + (axis == 2)));
            sum += (a ? (real)0.5 : (real)1) * (b ? (real)0.5 : (real)1) * (first * second / (first + second));
        }
    }
    return sum;
}

// Computes the edges along an axis from node (i, j, k) of a coarse grid, except edges between border nodes.
kernel void coarsen_edges(
    const ColourGrid fine,
    const ColourGrid grid,  // the coarse one
    EDGES,
    global real *restrict coarse_x,
    global real *restrict coarse_y,
    global real *restrict coarse_z)
{
    const Edges edges = EDGES_GIVEN;
    TAKE_ROW(own_fine, fine, ROW_OF(grid));
    TAKE_ROW(own, grid, ROW_OF(grid));
    const int k = PLANE;
    if (k >= own.nz - 1) return;
#if PLANES
    for (int j = 0; j < own.ny - 1; ++j)
        for (int i = 0; i < own.nx - 1; ++i) {
#else
    const int i = get_global_id(0), j = get_global_id(1);
    if (i < own.nx - 1 && j < own.ny - 1) {
#endif
        const NodeIndex at = node_at(own, i, j, k), of_fine = node_at(own_fine, 2 * i, 2 * j, 2 * k);
        if (j && k) coarse_x[at] = coarse_edge(own_fine, 0, of_fine, edges);
        if (i && k) coarse_y[at] = coarse_edge(own_fine, 1, of_fine, edges);
        if (i && j) coarse_z[at] = coarse_edge(own_fine, 2, of_fine, edges);
    }
}

// Salt term of a coarse node, with the weights of trilinear interpolation.
kernel void coarsen_salt(
    const ColourGrid fine,
    const ColourGrid grid,  // the coarse one
    const real salt_unit,
    global const salts *restrict salt,
    global real *restrict coarse_salt)
{
    TAKE_ROW(own_fine, fine, ROW_OF(grid));
    TAKE_ROW(own, grid, ROW_OF(grid));
    if (!IS_INNER_PLANE(own)) return;
    for (int colour = 0; colour < 2; ++colour) {
        FOR_ROWS(j, own) {
            const Row row = row_at(own, colour, j, PLANE);
            FOR_NODES(m, own, row) {
                const NodeIndex at = node_at(own_fine, 2 * (2 * m + row.odd), 2 * j, 2 * PLANE);
                real sum = 0;
#pragma unroll
                for (int c = -1; c < 2; ++c)
#pragma unroll
                    for (int b = -1; b < 2; ++b)
#pragma unroll
                        for (int a = -1; a < 2; ++a)
                            sum += salt_term(salt_unit, salt, beside(own_fine, at, a, b, c))
                                 / ((1 + abs(a)) * (1 + abs(b)) * (1 + abs(c)));
                coarse_salt[row.own + m] = sum;
            }
        }
    }
}
