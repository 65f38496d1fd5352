// The singular potential that is taken out of the solution near the atoms, and the equation that is left.
#include "common/total.clh"
#define NUMBER total
#include "pb/operator.clh"

#if CODED
typedef uchar access;
#else
typedef total access;
#endif

typedef struct { total c[6]; } Six;

// Coefficients of the six edges of a node: right, left, behind, before, above, below.
INLINE Six edges_of(ColourGrid grid, Row row, int m, EDGES_TAKEN) {
    const size_t own = row.own + m, other = row.other + m, left = other - 1 + row.odd;
    const size_t line = grid.row, plane = (size_t)grid.row * grid.ny;
    const Six six = {{
        COEFFICIENT(x_edges, 0, own), COEFFICIENT(x_edges, 0, left), COEFFICIENT(y_edges, 1, own),
        COEFFICIENT(y_edges, 1, other - line), COEFFICIENT(z_edges, 2, own), COEFFICIENT(z_edges, 2, other - plane),
    }};
    return six;
}

INLINE size_t neighbour_of(ColourGrid grid, Row row, int m, int which) {
    const size_t other = row.other + m, line = grid.row, plane = (size_t)grid.row * grid.ny;
    return which == 0 ? other + row.odd : which == 1 ? other + row.odd - 1 : which == 2 ? other + line
         : which == 3 ? other - line : which == 4 ? other + plane : other - plane;
}

// The region where the singular potential is taken out: inner nodes with an edge in the molecule, out of ions' reach.
// solutes : (3) coefficients of such edges
kernel void find_region(
    const ColourGrid grid, EDGES, global const access *restrict accesses, global const total *restrict solutes,
    global uchar *restrict region)
{
    if (!IS_INNER_PLANE(grid)) return;
    for (int colour = 0; colour < 2; ++colour) {
        FOR_ROWS(j, grid) {
            const Row row = row_at(grid, colour, j, PLANE);
            FOR_NODES(m, grid, row) {
                const Six six = edges_of(grid, row, m, EDGES_PASSED);
                int is_inside = 0;
                for (int t = 0; t < 6; ++t) is_inside |= six.c[t] == solutes[t / 2];
#if SALTED
                is_inside &= accesses[row.own + m] == 0;
#endif
                region[row.own + m] = is_inside;
            }
        }
    }
}

// Nodes of whose equation a part of the singular potential is: those with neighbours on the region's other side, and those
// of the region with an edge that leaves the molecule.
kernel void find_jumps(
    const ColourGrid grid, EDGES, global const total *restrict solutes, global const uchar *restrict region,
    global uchar *restrict jumps)
{
    if (!IS_INNER_PLANE(grid)) return;
    for (int colour = 0; colour < 2; ++colour) {
        FOR_ROWS(j, grid) {
            const Row row = row_at(grid, colour, j, PLANE);
            FOR_NODES(m, grid, row) {
                const Six six = edges_of(grid, row, m, EDGES_PASSED);
                const int own = region[row.own + m];
                int jump = 0;
                for (int t = 0; t < 6; ++t) {
                    jump |= own != region[neighbour_of(grid, row, m, t)] || (own && six.c[t] != solutes[t / 2]);
                }
                jumps[row.own + m] = jump;
            }
        }
    }
}

// The equation's right side at these nodes. A work-item a node.
kernel void singular_charges(
    const ColourGrid grid, EDGES, global const total *restrict solutes, global const uchar *restrict region,
    const int n_nodes,
    global const int *restrict nodes,       // (n_nodes, 3) i, j, k
    global const total *restrict singular,  // at these nodes the potential that is taken out [kT/e]
    global total *restrict right)           // (n_nodes)
{
    const int t = get_global_id(0);
    if (t >= n_nodes) return;
    const int i = nodes[3 * t], j = nodes[3 * t + 1], k = nodes[3 * t + 2], m = i / 2;
    const Row row = row_at(grid, (i + j + k) & 1, j, k);
    const Six six = edges_of(grid, row, m, EDGES_PASSED);
    const int own = region[row.own + m];
    const total here = singular[row.own + m];
    total sum = 0;
    for (int e = 0; e < 6; ++e) {
        const size_t at = neighbour_of(grid, row, m, e);
        if (own && six.c[e] != solutes[e / 2]) sum += (six.c[e] - solutes[e / 2]) * (singular[at] - here);
        if (own != region[at]) sum += (own ? -1 : 1) * six.c[e] * singular[at];
    }
    right[t] = sum;
}

// Adds values at nodes. A work-item a node.
kernel void add_at(
    const ColourGrid grid, const int n_nodes, global const int *restrict nodes, global const total *restrict values,
    global total *restrict array)
{
    const int t = get_global_id(0);
    if (t >= n_nodes) return;
    array[node_at(grid, nodes[3 * t], nodes[3 * t + 1], nodes[3 * t + 2])] += values[t];
}
