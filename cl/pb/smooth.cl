// Smoothers of a grid: Jacobi, red-black Gauss-Seidel and overrelaxation; and the product with the operator. One
// work-item per plane of nodes (CPUs) or per few nodes.
#include "common/real.clh"
#include "pb/smooth.clh"

#if CODED && SALTED != 1 && !PLANES
// Marks the groups whose nodes, of both colours, have only edges of the solvent's code and are accessible to ions.
// Groups are those of the kernels that use the marks.
kernel void mark_plain(
    const ColourGrid grid, EDGES, global const salts *restrict salt, const int solvent, global uchar *restrict marks)
{
    TAKE_ROW(own, grid, ROW_OF(grid));
    local int n_mixed;
    if (get_local_id(0) == 0 && get_local_id(1) == 0) n_mixed = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (IS_INNER_PLANE(own)) {
        for (int colour = 0; colour < 2; ++colour) {
            FOR_ROWS(j, own) {
                const Row row = row_at(own, colour, j, PLANE);
                FOR_NODES(m, own, row) {
                    const NodeIndex at = row.own + m, other = row.other + m, plane = (NodeIndex)own.row * own.ny;
                    int is_plain = x_edges[at] == solvent && x_edges[other - 1 + row.odd] == solvent
                                && y_edges[at] == solvent && y_edges[other - own.row] == solvent
                                && z_edges[at] == solvent && z_edges[other - plane] == solvent;
#if SALTED
                    is_plain &= salt[at];
#endif
                    if (!is_plain) atomic_inc(&n_mixed);
                }
            }
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (get_local_id(0) == 0 && get_local_id(1) == 0) {
        marks[(get_group_id(2) * get_num_groups(1) + get_group_id(1)) * get_num_groups(0) + get_group_id(0)] = !n_mixed;
    }
}
#endif

// Relaxes the nodes of a colour. share : 1, or more for overrelaxation
kernel void smooth(
    const ColourGrid grid,
    PROBLEM,
    const int colour,
    const real share,
    global const real *restrict right,
    global real *restrict values)  // 0 at the border
{
    const Problem problem = PROBLEM_GIVEN;
    TAKE_ROW(own, grid, ROW_OF(grid));
    if (!IS_INNER_PLANE(own)) return;
    FOR_ROWS(j, own) {
        const Row row = row_at(own, colour, j, PLANE);
        FOR_NODES(m, own, row) {
            values[row.own + m] = relaxed(own, row, m, problem, values, right[row.own + m], share);
        }
    }
}

// Relaxes the red nodes from zero values, which are not read.
kernel void begin_smoothing(
    const ColourGrid grid,
    PROBLEM,
    global const real *restrict right,
    global real *restrict values)
{
    const Problem problem = PROBLEM_GIVEN;
    TAKE_ROW(own, grid, ROW_OF(grid));
    if (!IS_INNER_PLANE(own)) return;
    FOR_ROWS(j, own) {
        const Row row = row_at(own, 0, j, PLANE);
        FOR_NODES(m, own, row) {
            values[row.own + m] = right[row.own + m] / diagonal_at(own, row, m, problem);
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
    const Problem problem = PROBLEM_GIVEN;
    TAKE_ROW(own, grid, ROW_OF(grid));
    if (!IS_INNER_PLANE(own)) return;
    FOR_ROWS(j, own) {
        const Row row = row_at(own, colour, j, PLANE);
        FOR_NODES(m, own, row) {
            residual[row.own + m] = residual_at(own, row, m, problem, values, right[row.own + m]);
        }
    }
}

// Jacobi relaxation: adds a fraction of the residual over the diagonal, from residuals of all nodes.
kernel void relax_by_residual(
    const ColourGrid grid,
    PROBLEM,
    const int colour,
    const real share,
    global const real *restrict residual,
    global real *restrict values)
{
    const Problem problem = PROBLEM_GIVEN;
    TAKE_ROW(own, grid, ROW_OF(grid));
    if (!IS_INNER_PLANE(own)) return;
    FOR_ROWS(j, own) {
        const Row row = row_at(own, colour, j, PLANE);
        FOR_NODES(m, own, row) {
            values[row.own + m] += share * residual[row.own + m] / diagonal_at(own, row, m, problem);
        }
    }
}

// Applies the operator to a direction, at nodes of both colours.
kernel void apply(
    const ColourGrid grid,
    PROBLEM,
    global const real *restrict direction,  // 0 at the border
    global real *restrict product)
{
    const Problem problem = PROBLEM_GIVEN;
    TAKE_ROW(own, grid, ROW_OF(grid));
    if (!IS_INNER_PLANE(own)) return;
    for (int colour = 0; colour < 2; ++colour) {
        FOR_ROWS(j, own) {
            const Row row = row_at(own, colour, j, PLANE);
            FOR_NODES(m, own, row) {
                product[row.own + m] = -residual_at(own, row, m, problem, direction, (real)0);
            }
        }
    }
}
