// Restriction of residuals to the next coarser grid, and prolongation of corrections. One work-item per plane (CPUs) or
// per few nodes.
#include "common/real.clh"
#include "pb/transfer.clh"

// Right-hand side of the coarse grid from the residual of the fine grid at red nodes.
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

// Adds the correction of the coarse grid to the red nodes of the fine grid; black nodes are relaxed next, from red ones
// only.
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
