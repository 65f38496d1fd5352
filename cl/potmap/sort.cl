// Atoms of each cell from those of its parts: potmap/sort.clh.
#include "common/real.clh"

kernel void add_parts(
    const int n_parts, const int n_cells,
    global int *restrict counts,            // (n_parts, n_cells) atoms in; atoms of the cell in parts before, out
    global int *restrict totals)            // (n_cells) atoms of each cell
{
    const int cell = get_global_id(0);
    if (cell >= n_cells) return;
    int before = 0;
    for (int part = 0; part < n_parts; ++part) {
        global int *own = counts + (size_t)part * n_cells + cell;
        const int count = *own;
        *own = before;
        before += count;
    }
    totals[cell] = before;
}

#ifndef GROUP
#error "GROUP: work-items of a group"
#endif
// Where the atoms of each cell begin. One group: each work-item has a run of cells.
kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void begin_cells(
    const int n_cells,
    global const int *restrict totals,      // (n_cells)
    global int *restrict starts)            // (n_cells + 1)
{
    local int sums[GROUP];
    const int item = get_local_id(0), run = (n_cells + GROUP - 1) / GROUP;
    const int first = min(n_cells, item * run), end = min(n_cells, first + run);
    int sum = 0;
    for (int cell = first; cell < end; ++cell) sum += totals[cell];
    sums[item] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    int before = 0;
    for (int other = 0; other < item; ++other) before += sums[other];
    for (int cell = first; cell < end; ++cell) {
        starts[cell] = before;
        before += totals[cell];
    }
    if (item == GROUP - 1) starts[n_cells] = before;
}
