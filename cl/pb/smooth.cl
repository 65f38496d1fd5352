// Relaxation of a grid: Jacobi's method, Gauss and Seidel's by colours, overrelaxation; and the operator's product. A
// work-item does a plane of nodes or one node.
#include "common/real.clh"
#include "pb/smooth.clh"

// Relaxes the nodes of a colour. share : 1, or more to overshoot
kernel void smooth(
    const ColourGrid grid,
    PROBLEM,
    const int colour,
    const real share,
    global const real *restrict right,
    global real *restrict values)  // 0 at the border
{
    TAKE_ROW(own, grid, ROW_OF(grid));
    if (!IS_INNER_PLANE(own)) return;
    FOR_ROWS(j, own) {
        const Row row = row_at(own, colour, j, PLANE);
        FOR_NODES(m, own, row) {
            values[row.own + m] = relaxed(own, row, m, PROBLEM_PASSED, values, right[row.own + m], share);
        }
    }
}

// Relaxes the red nodes where all values are 0: nothing is read of them.
kernel void begin_smoothing(
    const ColourGrid grid,
    PROBLEM,
    global const real *restrict right,
    global real *restrict values)
{
    TAKE_ROW(own, grid, ROW_OF(grid));
    if (!IS_INNER_PLANE(own)) return;
    FOR_ROWS(j, own) {
        const Row row = row_at(own, 0, j, PLANE);
        FOR_NODES(m, own, row) {
            values[row.own + m] = right[row.own + m] / diagonal_at(own, row, m, PROBLEM_PASSED);
        }
    }
}

// Residuals at the nodes of a colour.
kernel void find_residual(
    const ColourGrid grid,
    PROBLEM,
    const int colour,
    global const real *restrict right,
    global const real *restrict values,
    global real *restrict residual)
{
    TAKE_ROW(own, grid, ROW_OF(grid));
    if (!IS_INNER_PLANE(own)) return;
    FOR_ROWS(j, own) {
        const Row row = row_at(own, colour, j, PLANE);
        FOR_NODES(m, own, row) {
            residual[row.own + m] = residual_at(own, row, m, PROBLEM_PASSED, values, right[row.own + m]);
        }
    }
}

// Jacobi's method: each node by a share of its residual over its diagonal, from residuals of all nodes.
kernel void relax_by_residual(
    const ColourGrid grid,
    PROBLEM,
    const int colour,
    const real share,
    global const real *restrict residual,
    global real *restrict values)
{
    TAKE_ROW(own, grid, ROW_OF(grid));
    if (!IS_INNER_PLANE(own)) return;
    FOR_ROWS(j, own) {
        const Row row = row_at(own, colour, j, PLANE);
        FOR_NODES(m, own, row) {
            values[row.own + m] += share * residual[row.own + m] / diagonal_at(own, row, m, PROBLEM_PASSED);
        }
    }
}

// Multiplies the operator with a direction, nodes of both colours.
kernel void apply(
    const ColourGrid grid,
    PROBLEM,
    global const real *restrict direction,  // 0 at the border
    global real *restrict product)
{
    TAKE_ROW(own, grid, ROW_OF(grid));
    if (!IS_INNER_PLANE(own)) return;
    for (int colour = 0; colour < 2; ++colour) {
        FOR_ROWS(j, own) {
            const Row row = row_at(own, colour, j, PLANE);
            FOR_NODES(m, own, row) {
                product[row.own + m] = -residual_at(own, row, m, PROBLEM_PASSED, direction, (real)0);
            }
        }
    }
}
