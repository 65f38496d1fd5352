// Residuals go to the next coarser grid, corrections come back. A work-item does a plane of nodes or one node.
#include "common/real.clh"
#include "pb/transfer.clh"

// Finds the coarse grid's right side from the fine grid's residual at red nodes.
kernel void restrict_residual(
    ColourGrid fine,
    ColourGrid grid,  // the coarse one
    global const real *restrict residual,
    global real *restrict right)
{
    TAKE_ROW(fine, ROW_OF(grid));
    TAKE_ROW(grid, ROW_OF(grid));
    if (!IS_INNER_PLANE(grid)) return;
    for (int colour = 0; colour < 2; ++colour) {
        FOR_ROWS(j, grid) {
            const Row row = row_at(grid, colour, j, PLANE);
            FOR_NODES(m, grid, row) {
                right[row.own + m] = restricted(fine, 2 * (2 * m + row.odd), 2 * j, 2 * PLANE, residual);
            }
        }
    }
}

// Adds the coarse grid's correction to the fine grid's red nodes; black ones are relaxed next, from red ones alone.
kernel void add_correction(
    ColourGrid coarse,
    ColourGrid grid,  // the fine one
    global const real *restrict correction,
    global real *restrict values)
{
    TAKE_ROW(coarse, ROW_OF(grid));
    TAKE_ROW(grid, ROW_OF(grid));
    if (!IS_INNER_PLANE(grid)) return;
    FOR_ROWS(j, grid) {
        const Row row = row_at(grid, 0, j, PLANE);
        FOR_NODES(m, grid, row) {
            values[row.own + m] += interpolated(coarse, 2 * m + row.odd, j, PLANE, correction);
        }
    }
}
