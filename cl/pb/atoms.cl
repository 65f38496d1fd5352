// Singular potential, which is subtracted near the atoms, and the right-hand side of the remaining equation. One
// work-item per plane of nodes (CPUs) or per few nodes.
#include "common/real.clh"
#include "common/total.clh"
#define WIDE_NUMBERS
#include "pb/operator.clh"

#if CODED
typedef uchar access;
#else
typedef total access;
#endif

// Coefficient of edge e of a node, in the order right, left, far, near, above, below; e is along axis e / 2.
INLINE total edge_of(ColourGrid grid, Row row, int m, int e, Edges edges) {
    const NodeIndex own = row.own + m, other = row.other + m, line = grid.row, plane = (NodeIndex)grid.row * grid.ny;
    if (e == 0) return coefficient(edges, 0, own);
    if (e == 1) return coefficient(edges, 0, other - 1 + row.odd);
    if (e == 2) return coefficient(edges, 1, own);
    if (e == 3) return coefficient(edges, 1, other - line);
    if (e == 4) return coefficient(edges, 2, own);
    return coefficient(edges, 2, other - plane);
}

INLINE NodeIndex neighbour_of(ColourGrid grid, Row row, int m, int which) {
    const NodeIndex other = row.other + m, line = grid.row, plane = (NodeIndex)grid.row * grid.ny;
    return which == 0 ? other + row.odd : which == 1 ? other + row.odd - 1 : which == 2 ? other + line
         : which == 3 ? other - line : which == 4 ? other + plane : other - plane;
}

// Marks the region in which the singular potential is subtracted: inner nodes with an edge in the molecule, and
// inaccessible to ions. solutes : (3) coefficients of such edges
kernel void find_region(
    const ColourGrid grid, EDGES, global const access *restrict accesses, global const total *restrict solutes,
    global uchar *restrict region)
{
    const Edges edges = EDGES_GIVEN;
    if (!IS_INNER_PLANE(grid)) return;
    TAKE_ROW(own_grid, grid, ROW_OF(grid));
    for (int colour = 0; colour < 2; ++colour) {
        FOR_ROWS(j, grid) {
            const Row row = row_at(own_grid, colour, j, PLANE);
            FOR_NODES(m, grid, row) {
                int is_inside = 0;
                for (int t = 0; t < 6; ++t) is_inside |= edge_of(grid, row, m, t, edges) == solutes[t / 2];
#if SALTED
                is_inside &= accesses[row.own + m] == 0;
#endif
                region[row.own + m] = is_inside;
            }
        }
    }
}

// Adds nodes to the region and makes them inaccessible to ions. places : (n_places) indices of nodes, possibly
// repeated. One work-item per place.
kernel void include_nodes(
    const int n_places, global const uint *restrict places, global uchar *restrict region,
    global access *restrict accesses)
{
    const int t = get_global_id(0);
    if (t >= n_places) return;
    region[places[t]] = 1;
#if SALTED
    accesses[places[t]] = 0;
#endif
}

// Marks the nodes whose equation contains the singular potential: those with neighbours on the other side of the
// boundary of the region, or in the region with an edge that leaves the molecule.
kernel void find_jumps(
    const ColourGrid grid, EDGES, global const total *restrict solutes, global const uchar *restrict region,
    global uchar *restrict jumps)
{
    const Edges edges = EDGES_GIVEN;
    if (!IS_INNER_PLANE(grid)) return;
    TAKE_ROW(own_grid, grid, ROW_OF(grid));
    for (int colour = 0; colour < 2; ++colour) {
        FOR_ROWS(j, grid) {
            const Row row = row_at(own_grid, colour, j, PLANE);
            FOR_NODES(m, grid, row) {
                const int own = region[row.own + m];
                int jump = 0;
                for (int t = 0; t < 6; ++t) {
                    const int leaves = edge_of(grid, row, m, t, edges) != solutes[t / 2];
                    jump |= own != region[neighbour_of(grid, row, m, t)] || (own && leaves);
                }
                jumps[row.own + m] = jump;
            }
        }
    }
}

// Number of marked nodes in a row along x; if `writes`, their i, j, k are written to nodes[3 * at] and on.
INLINE int marked_in_row(
    ColourGrid grid, int j, int k, global const uchar *marks, global int *nodes, NodeIndex at, int writes)
{
    int count = 0;
    for (int colour = 0; colour < 2; ++colour) {
        const Row row = row_at(grid, colour, j, k);
        for (int m = 0; 2 * m + row.odd < grid.nx; ++m) {
            if (!marks[row.own + m]) continue;
            if (writes) {
                nodes[3 * (at + count)] = 2 * m + row.odd;
                nodes[3 * (at + count) + 1] = j;
                nodes[3 * (at + count) + 2] = k;
            }
            ++count;
        }
    }
    return count;
}

// Counts the marked nodes of each line of nodes along x. One work-item per line.
kernel void count_marked(
    const ColourGrid grid, const int n_lines, global const uchar *restrict marks, global int *restrict counts)
{
    const int line = get_global_id(0), of_grid = grid.ny * grid.nz, own = line % of_grid;
    if (line >= n_lines) return;
    TAKE_ROW(own_grid, grid, line / of_grid);
    counts[line] = marked_in_row(own_grid, own % grid.ny, own / grid.ny, marks, 0, 0, 0);
}

// Lists the marked nodes. starts : (n_lines + 1) index of each line's first marked node
kernel void list_marked(
    const ColourGrid grid, const int n_lines, global const uchar *restrict marks, global const int *restrict starts,
    global int *restrict nodes)
{
    const int line = get_global_id(0), of_grid = grid.ny * grid.nz, own = line % of_grid;
    if (line >= n_lines) return;
    TAKE_ROW(own_grid, grid, line / of_grid);
    marked_in_row(own_grid, own % grid.ny, own / grid.ny, marks, nodes, starts[line], 1);
}

// Computes the right-hand side at these nodes. One work-item per node.
kernel void singular_charges(
    const ColourGrid grid, EDGES, global const total *restrict solutes, global const uchar *restrict region,
    global const int4 *restrict ranges,     // (rows) first node and number of nodes of a row
    global const int *restrict nodes,       // (n_nodes, 3) i, j, k
    global const total *restrict singular,  // the subtracted potential at these nodes [kT/e]
    global total *restrict right)           // (n_nodes)
{
    const Edges edges = EDGES_GIVEN;
    const int4 range = ranges[get_global_id(2)];
    if (get_global_id(0) >= range.y) return;
    TAKE_ROW(own_grid, grid, get_global_id(2));
    const int t = range.x + get_global_id(0), i = nodes[3 * t], j = nodes[3 * t + 1], k = nodes[3 * t + 2], m = i / 2;
    const Row row = row_at(own_grid, (i + j + k) & 1, j, k);
    const int own = region[row.own + m];
    const total here = singular[row.own + m];
    total sum = 0;
    for (int e = 0; e < 6; ++e) {
        const NodeIndex at = neighbour_of(grid, row, m, e);
        const total coefficient = edge_of(grid, row, m, e, edges);
        if (own && coefficient != solutes[e / 2]) sum += (coefficient - solutes[e / 2]) * (singular[at] - here);
        if (own != region[at]) sum += (own ? -1 : 1) * coefficient * singular[at];
    }
    right[t] = sum;
}
