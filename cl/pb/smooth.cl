// Relaxation of a grid: Jacobi's method, Gauss and Seidel's by colours, overrelaxation; and the operator's product. A
// work-item does a plane of nodes or one node.
#include "common/real.clh"
#include "pb/smooth.clh"

// Relaxes the nodes of a colour. share : 1, or more to overshoot
kernel void smooth(
    ColourGrid grid,
    PROBLEM,
    const int colour,
    const real share,
    global const real *restrict right,
    global real *restrict values)  // 0 at the border
{
    TAKE_ROW(grid, ROW_OF(grid));
    if (!IS_INNER_PLANE(grid)) return;
    FOR_ROWS(j, grid) {
        const Row row = row_at(grid, colour, j, PLANE);
        FOR_NODES(m, grid, row) {
            values[row.own + m] = relaxed(grid, row, m, PROBLEM_PASSED, values, right[row.own + m], share);
        }
    }
}

// Relaxes the red nodes where all values are 0: nothing is read of them.
kernel void begin_smoothing(
    ColourGrid grid,
    PROBLEM,
    global const real *restrict right,
    global real *restrict values)
{
    TAKE_ROW(grid, ROW_OF(grid));
    if (!IS_INNER_PLANE(grid)) return;
    FOR_ROWS(j, grid) {
        const Row row = row_at(grid, 0, j, PLANE);
        FOR_NODES(m, grid, row) {
            values[row.own + m] = right[row.own + m] / diagonal_at(grid, row, m, PROBLEM_PASSED);
        }
    }
}

// Residuals at the nodes of a colour.
kernel void find_residual(
    ColourGrid grid,
    PROBLEM,
    const int colour,
    global const real *restrict right,
    global const real *restrict values,
    global real *restrict residual)
{
    TAKE_ROW(grid, ROW_OF(grid));
    if (!IS_INNER_PLANE(grid)) return;
    FOR_ROWS(j, grid) {
        const Row row = row_at(grid, colour, j, PLANE);
        FOR_NODES(m, grid, row) {
            residual[row.own + m] = residual_at(grid, row, m, PROBLEM_PASSED, values, right[row.own + m]);
        }
    }
}

// Jacobi's method: each node by a share of its residual over its diagonal, from residuals of all nodes.
kernel void relax_by_residual(
    ColourGrid grid,
    PROBLEM,
    const int colour,
    const real share,
    global const real *restrict residual,
    global real *restrict values)
{
    TAKE_ROW(grid, ROW_OF(grid));
    if (!IS_INNER_PLANE(grid)) return;
    FOR_ROWS(j, grid) {
        const Row row = row_at(grid, colour, j, PLANE);
        FOR_NODES(m, grid, row) {
            values[row.own + m] += share * residual[row.own + m] / diagonal_at(grid, row, m, PROBLEM_PASSED);
        }
    }
}

// Multiplies the operator with a direction, nodes of both colours.
kernel void apply(
    ColourGrid grid,
    PROBLEM,
    global const real *restrict direction,  // 0 at the border
    global real *restrict product)
{
    TAKE_ROW(grid, ROW_OF(grid));
    if (!IS_INNER_PLANE(grid)) return;
    for (int colour = 0; colour < 2; ++colour) {
        FOR_ROWS(j, grid) {
            const Row row = row_at(grid, colour, j, PLANE);
            FOR_NODES(m, grid, row) {
                product[row.own + m] = -residual_at(grid, row, m, PROBLEM_PASSED, direction, (real)0);
            }
        }
    }
}
