// The molecule on the grid: dielectric edges, and nodes accessible to ions. One group per block of nodes, one work-item
// per node with its three outgoing edges. Several molecules on grids of the same shape are rows, whose blocks and
// arrays are consecutive.
#include "common/real.clh"
#include "pb/spheres.clh"

// Midpoints of edges: 1 in solvent, 0 in the molecule. origins : (rows, 3) of the grids of midpoints along x, y and z
kernel void mark_middles(
    const ColourGrid grid, global const total4 *restrict origins, global const total4 *restrict spacing, LISTS(atom),
    LISTS(probe), global uchar *restrict x_codes, global uchar *restrict y_codes, global uchar *restrict z_codes)
{
    const Lists atoms = LISTS_OF(atom), probes = LISTS_OF(probe);
    int i, j, k;
    TAKE_ROW(own, grid, row_of_group(grid));
    global const total4 *const middles = origins + 3 * row_of_group(grid);
#if PLANES  // a group has one work-item, which shares the tests of a sphere among the nodes of a block
    first_node(grid, &i, &j, &k);
    Covered by_atoms = {{0}}, by_probes = {{0}};
    cover(&by_atoms, i, j, k, middles, spacing[0], atoms);
    cover(&by_probes, i, j, k, middles, spacing[0], probes);
    for (int row = 0; row < BLOCK * BLOCK; ++row) {
        const int y = j + row % BLOCK, z = k + row / BLOCK;
        if (y >= grid.ny || z >= grid.nz) continue;
        for (int axis = 0; axis < 3; ++axis) {
            const int4 solvent = 1 + convert_int4(by_atoms.rows[axis * BLOCK * BLOCK + row]
                                                  & ~by_probes.rows[axis * BLOCK * BLOCK + row]);
            const int of_row[4] = {solvent.x, solvent.y, solvent.z, solvent.w};
            global uchar *codes = axis == 0 ? x_codes : axis == 1 ? y_codes : z_codes;
            for (int x = 0; x < BLOCK && i + x < grid.nx; ++x) codes[node_at(own, i + x, y, z)] = of_row[x];
        }
    }
#else
    if (!own_node(grid, &i, &j, &k)) return;
    const NodeIndex at = node_at(own, i, j, k);
    for (int axis = 0; axis < 3; ++axis) {
        const int is_solute = is_covered(i, j, k, middles[axis], spacing[0], atoms)
                           && !is_covered(i, j, k, middles[axis], spacing[0], probes);
        (axis == 0 ? x_codes : axis == 1 ? y_codes : z_codes)[at] = !is_solute;
    }
#endif
}

// Counts the pieces in solvent, of 64, of each edge. origins : (rows) of the grids
kernel void cut_edges(
    const ColourGrid grid, global const total4 *restrict origins, global const total4 *restrict spacing, LISTS(atom),
    LISTS(probe), global uchar *restrict x_codes, global uchar *restrict y_codes, global uchar *restrict z_codes)
{
    const Lists atoms = LISTS_OF(atom), probes = LISTS_OF(probe);
    int i, j, k;
    TAKE_ROW(own, grid, row_of_group(grid));
    const total4 origin = origins[row_of_group(grid)];
    SHARED;
    const int is_own = own_node(grid, &i, &j, &k);
    ulong pieces[3] = {0, 0, 0};
    cover_pieces(pieces, i, j, k, origin, spacing[0], atoms, shared);
    for (int axis = 0; axis < 3; ++axis) pieces[axis] = ~pieces[axis];
    cover_pieces(pieces, i, j, k, origin, spacing[0], probes, shared);
    if (!is_own) return;
    const NodeIndex at = node_at(own, i, j, k);
    x_codes[at] = (uchar)popcount(pieces[0]);
    y_codes[at] = (uchar)popcount(pieces[1]);
    z_codes[at] = (uchar)popcount(pieces[2]);
}

// Marks the nodes accessible to ions.
kernel void mark_access(
    const ColourGrid grid, global const total4 *restrict origins, global const total4 *restrict spacing, LISTS(atom),
    global uchar *restrict accesses)
{
    const Lists atoms = LISTS_OF(atom);
    int i, j, k;
    TAKE_ROW(own, grid, row_of_group(grid));
    const total4 origin = origins[row_of_group(grid)];
    if (!own_node(grid, &i, &j, &k)) return;
    accesses[node_at(own, i, j, k)] = !is_covered(i, j, k, origin, spacing[0], atoms);
}

// For the midpoint of each inner node's edges: 90 plus how many of the nine midpoints within one step are in solvent.
// One work-item per plane of nodes (CPUs) or per few nodes.
kernel void count_middles(
    const ColourGrid grid, global const uchar *restrict x_codes, global const uchar *restrict y_codes,
    global const uchar *restrict z_codes, global uchar *restrict x_counts, global uchar *restrict y_counts,
    global uchar *restrict z_counts)
{
    if (!IS_INNER_PLANE(grid)) return;
    TAKE_ROW(of_row, grid, ROW_OF(grid));
    const NodeIndex line = grid.row, plane = (NodeIndex)grid.row * grid.ny;
    for (int colour = 0; colour < 2; ++colour) {
        FOR_ROWS(j, grid) {
            const Row row = row_at(of_row, colour, j, PLANE);
            FOR_NODES(m, grid, row) {
                const NodeIndex own = row.own + m, right = row.other + m + row.odd, left = right - 1;
                const NodeIndex behind = row.other + m - line, ahead = row.other + m + line;
                const NodeIndex below = row.other + m - plane, above = row.other + m + plane;
                x_counts[own] = 90 + x_codes[own] + y_codes[own] + y_codes[behind] + y_codes[right]
                              + y_codes[own - line + row.odd] + z_codes[own] + z_codes[below] + z_codes[right]
                              + z_codes[own - plane + row.odd];
                y_counts[own] = 90 + y_codes[own] + x_codes[own] + x_codes[left] + x_codes[ahead]
                              + x_codes[own + line + row.odd - 1] + z_codes[own] + z_codes[below] + z_codes[ahead]
                              + z_codes[own + line - plane];
                z_counts[own] = 90 + z_codes[own] + x_codes[own] + x_codes[left] + x_codes[above]
                              + x_codes[own + plane + row.odd - 1] + y_codes[own] + y_codes[behind] + y_codes[above]
                              + y_codes[own + plane - line];
            }
        }
    }
}

// The same for the edges of border nodes: 10 times the number of existing midpoints within one step, plus the number of
// those in solvent. One work-item per plane of nodes (CPUs) or per node.
kernel void count_border_middles(
    const ColourGrid grid, global const uchar *restrict x_codes, global const uchar *restrict y_codes,
    global const uchar *restrict z_codes, global uchar *restrict x_counts, global uchar *restrict y_counts,
    global uchar *restrict z_counts)
{
    const int ends[3] = {grid.nx, grid.ny, grid.nz}, k = PLANE;
    if (k >= grid.nz) return;
    TAKE_ROW(of_row, grid, ROW_OF(grid));
#if PLANES
    for (int j = 0; j < grid.ny; ++j) {
        const int is_inner = j > 0 && j < grid.ny - 1 && IS_INNER_PLANE(grid);
        for (int i = 0; i < grid.nx; i += is_inner ? grid.nx - 1 : 1) {
#else
    const int i = get_global_id(0), j = get_global_id(1);
    const int is_inner = i > 0 && i < grid.nx - 1 && j > 0 && j < grid.ny - 1 && IS_INNER_PLANE(grid);
    if (i < grid.nx && j < grid.ny && !is_inner) {
        {
#endif
            for (int axis = 0; axis < 3; ++axis) {
                int count = 0, solvent = 0;
                for (int other = 0; other < 3; ++other) {
                    for (int back = 0; back <= (other != axis); ++back) {
                        for (int ahead = 0; ahead <= (other != axis); ++ahead) {
                            int node[3] = {i, j, k};
                            node[other] -= back;
                            node[axis] += ahead;
                            if (node[other] < 0 || node[axis] >= ends[axis]) continue;
                            const NodeIndex at = node_at(of_row, node[0], node[1], node[2]);
                            ++count;
                            solvent += (other == 0 ? x_codes : other == 1 ? y_codes : z_codes)[at];
                        }
                    }
                }
                (axis == 0 ? x_counts : axis == 1 ? y_counts : z_counts)[node_at(of_row, i, j, k)] =
                    (uchar)(10 * count + solvent);
            }
        }
    }
}

// Coefficients of edges from a spline surface of degree 3 or 7. origins : (rows) of the grids; constants : solute and
// solvent dielectric, then factors of the three axes
kernel void spline_edges(
    const ColourGrid grid, global const total4 *restrict origins, global const total4 *restrict spacing, LISTS(atom),
    const int degree, global const total4 *restrict windows, global const total *restrict constants,
    global total *restrict x_edges, global total *restrict y_edges, global total *restrict z_edges)
{
    const Lists atoms = LISTS_OF(atom);
    int i, j, k;
    TAKE_ROW(own, grid, row_of_group(grid));
    const total4 origin = origins[row_of_group(grid)];
    if (!own_node(grid, &i, &j, &k)) return;
    const NodeIndex at = node_at(own, i, j, k);
    for (int axis = 0; axis < 3; ++axis) {
        const total share =
            spline_product(i, j, k, axis, origin, spacing[0], degree, windows[0], atoms);
        (axis == 0 ? x_edges : axis == 1 ? y_edges : z_edges)[at] =
            (constants[0] + (constants[1] - constants[0]) * share) * constants[2 + axis];
    }
}

// Accessibility of nodes to ions from a spline surface.
kernel void spline_access(
    const ColourGrid grid, global const total4 *restrict origins, global const total4 *restrict spacing, LISTS(atom),
    const int degree, global const total4 *restrict windows, global total *restrict accesses)
{
    const Lists atoms = LISTS_OF(atom);
    int i, j, k;
    TAKE_ROW(own, grid, row_of_group(grid));
    const total4 origin = origins[row_of_group(grid)];
    if (!own_node(grid, &i, &j, &k)) return;
    accesses[node_at(own, i, j, k)] =
        spline_product(i, j, k, -1, origin, spacing[0], degree, windows[0], atoms);
}
