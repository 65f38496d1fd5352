// Residuals go to the next coarser grid, corrections come back. A work-item does a plane or a few nodes.
#include "common/real.clh"
#include "pb/transfer.clh"

// Finds the coarse grid's right side from the fine grid's residual at red nodes.
kernel void restrict_residual(
    const ColourGrid fine,
    const ColourGrid grid,  // the coarse one
    global const real *restrict residual,
    global real *restrict right)
{
    TAKE_ROW(own_fine, fine, ROW_OF(grid));
    TAKE_ROW(own, grid, ROW_OF(grid));
    if (!IS_INNER_PLANE(own)) return;
    for (int colour = 0; colour < 2; ++colour) {
        FOR_ROWS(j, own) {
            const Row row = row_at(own, colour, j, PLANE);
            FOR_NODES(m, own, row) {
                right[row.own + m] = restricted(own_fine, 2 * (2 * m + row.odd), 2 * j, 2 * PLANE, residual);
            }
        }
    }
}

// Adds the coarse grid's correction to the fine grid's red nodes; black ones are relaxed next, from red ones alone.
kernel void add_correction(
    const ColourGrid coarse,
    const ColourGrid grid,  // the fine one
    global const real *restrict correction,
    global real *restrict values)
{
    TAKE_ROW(own_coarse, coarse, ROW_OF(grid));
    TAKE_ROW(own, grid, ROW_OF(grid));
    if (!IS_INNER_PLANE(own)) return;
    FOR_ROWS(j, own) {
        const Row row = row_at(own, 0, j, PLANE);
        FOR_NODES(m, own, row) {
            values[row.own + m] += interpolated(own_coarse, 2 * m + row.odd, j, PLANE, correction);
        }
    }
}
