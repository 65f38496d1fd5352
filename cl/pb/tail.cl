// Coarsest grids of a V-cycle in one work-group per row, since separate launches would take longer than the work
// itself.
#include "common/real.clh"
#include "pb/smooth.clh"
#include "pb/transfer.clh"

#ifndef GROUP
#error "GROUP: work-items of the group"
#endif

// Loops over all nodes of a colour or a grid, shared by the group. Border rows are skipped.
#define FOR_ALL(t, count) for (int t = get_local_id(0); t < (count); t += GROUP)
#define FINISHED barrier(CLK_GLOBAL_MEM_FENCE)

// A grid of the row of this group.
INLINE ColourGrid grid_of(global const ColourGrid *grids, int level) {
    ColourGrid grid = grids[level];
    grid.first += (int)get_group_id(0) * grid.stride;
    return grid;
}

// Relaxes the nodes of a colour.
INLINE void relax_colour(
    ColourGrid grid, Problem problem, int colour, int is_first, global const real *right, global real *values)
{
    FOR_ALL(t, grid.row * grid.ny * grid.nz) {
        const int m = t % grid.row, j = t / grid.row % grid.ny, k = t / grid.row / grid.ny;
        if (j == 0 || j == grid.ny - 1 || k == 0 || k == grid.nz - 1) continue;
        const Row row = row_at(grid, colour, j, k);
        if (m < first_inner(row) || m > last_inner(grid, row)) continue;
        const real wanted = right[row.own + m];
        values[row.own + m] = is_first ? wanted / diagonal_at(grid, row, m, problem)
                                       : relaxed(grid, row, m, problem, values, wanted, 1);
    }
    FINISHED;
}

// Computes corrections of the grids from `first` on. Arrays contain all grids; the coarsest one is relaxed to
// convergence.
kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void solve_coarse(
    global const ColourGrid *restrict grids,
    const int first,
    const int n_grids,
    const int smoothings,
    const int solving,  // relaxation sweeps of the coarsest grid, forward and then backward
    PROBLEM,
    global real *restrict right,
    global real *restrict values,
    global real *restrict residual)
{
    const Problem problem = PROBLEM_GIVEN;
    for (int level = first; level < n_grids; ++level) {
        const ColourGrid grid = grid_of(grids, level);
        const int times = level == n_grids - 1 ? solving : smoothings;
        for (int s = 0; s < times; ++s) {
            relax_colour(grid, problem, 0, s == 0, right, values);
            relax_colour(grid, problem, 1, 0, right, values);
        }
        if (level == n_grids - 1) break;
        FOR_ALL(t, grid.row * grid.ny * grid.nz) {
            const int m = t % grid.row, j = t / grid.row % grid.ny, k = t / grid.row / grid.ny;
            if (j == 0 || j == grid.ny - 1 || k == 0 || k == grid.nz - 1) continue;
            const Row row = row_at(grid, 0, j, k);
            if (m < first_inner(row) || m > last_inner(grid, row)) continue;
            residual[row.own + m] = residual_at(grid, row, m, problem, values, right[row.own + m]);
        }
        FINISHED;
        const ColourGrid coarse = grid_of(grids, level + 1);
        FOR_ALL(t, coarse.nx * coarse.ny * coarse.nz) {
            const int i = t % coarse.nx, j = t / coarse.nx % coarse.ny, k = t / coarse.nx / coarse.ny;
            if (i == 0 || j == 0 || k == 0 || i == coarse.nx - 1 || j == coarse.ny - 1 || k == coarse.nz - 1) continue;
            right[node_at(coarse, i, j, k)] = restricted(grid, 2 * i, 2 * j, 2 * k, residual);
        }
        FINISHED;
    }
    for (int level = n_grids - 1; level >= first; --level) {
        const ColourGrid grid = grid_of(grids, level);
        if (level < n_grids - 1) {
            const ColourGrid coarse = grid_of(grids, level + 1);
            FOR_ALL(t, grid.row * grid.ny * grid.nz) {
                const int m = t % grid.row, j = t / grid.row % grid.ny, k = t / grid.row / grid.ny;
                if (j == 0 || j == grid.ny - 1 || k == 0 || k == grid.nz - 1) continue;
                const Row row = row_at(grid, 0, j, k);
                if (m < first_inner(row) || m > last_inner(grid, row)) continue;
                values[row.own + m] += interpolated(coarse, 2 * m + row.odd, j, k, values);
            }
            FINISHED;
        }
        const int times = level == n_grids - 1 ? solving : smoothings;
        for (int s = 0; s < times; ++s) {
            relax_colour(grid, problem, 1, 0, right, values);
            relax_colour(grid, problem, 0, 0, right, values);
        }
    }
}
