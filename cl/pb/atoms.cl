// Potentials of atoms: at the border of a grid, and the singular part that is taken out of the solution near them.
#include "common/total.clh"
#define NUMBER total
#include "pb/operator.clh"

#if DOUBLES
typedef double4 total4;
#else
typedef real4 total4;
#endif
#if CODED
typedef uchar access;
#else
typedef total access;
#endif
#define NEAREST (total)0.01  // [A] the singular potential is taken no closer to an atom

// Potential of every atom as a sphere in salt water. A work-item a point.
kernel void screened_spheres(
    const int n_points,
    global const total4 *restrict points,  // (n_points) [A]
    const int n_atoms,
    global const total4 *restrict atoms,   // (n_atoms) x, y, z, radius [A]
    global const total *restrict charges,  // (n_atoms) charge times a potential's factor over the dielectric [kT/e A]
    const total kappa,                     // [1/A]
    global total *restrict potential)      // (n_points) [kT/e]
{
    const int p = get_global_id(0);
    if (p >= n_points) return;
    const total4 point = points[p];
    total sum = 0;
    for (int a = 0; a < n_atoms; ++a) {
        const total4 atom = atoms[a];
        const total x = point.x - atom.x, y = point.y - atom.y, z = point.z - atom.z;
        const total r = sqrt(x * x + y * y + z * z);
        const total bare = charges[a] / r;
        sum += kappa > 0 ? bare * exp(-kappa * (r - atom.w)) / (1 + kappa * atom.w) : bare;
    }
    potential[p] = sum;
}

// Singular potential of all atoms at a node. origin : of the grid, spacing : along the axes [A]
INLINE total singular(
    int i, int j, int k, total4 origin, total4 spacing, int n_atoms, global const total4 *atoms, global const total *charges)
{
    total sum = 0;
    const total px = origin.x + i * spacing.x, py = origin.y + j * spacing.y, pz = origin.z + k * spacing.z;
    for (int a = 0; a < n_atoms; ++a) {
        const total x = px - atoms[a].x, y = py - atoms[a].y, z = pz - atoms[a].z;
        sum += charges[a] / fmax(sqrt(x * x + y * y + z * z), NEAREST);
    }
    return sum;
}

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

// The region where the singular potential is taken out: inner nodes whose edges all lie in the molecule, out of ions' reach.
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
                int is_inside = 1;
                for (int t = 0; t < 6; ++t) is_inside &= six.c[t] == solutes[t / 2];
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
    global const int *restrict nodes,      // (n_nodes, 3) i, j, k
    global const total4 *restrict place,   // (2) origin and spacing of the grid [A]
    const int n_atoms,
    global const total4 *restrict atoms,   // (n_atoms) x, y, z [A]
    global const total *restrict charges,  // (n_atoms) [kT/e A]
    global total *restrict right)          // (n_nodes)
{
    const int t = get_global_id(0);
    if (t >= n_nodes) return;
    const int i = nodes[3 * t], j = nodes[3 * t + 1], k = nodes[3 * t + 2], m = i / 2;
    const Row row = row_at(grid, (i + j + k) & 1, j, k);
    const Six six = edges_of(grid, row, m, EDGES_PASSED);
    const int own = region[row.own + m];
    total here = 0, sum = 0;
    int is_known = 0;
    for (int e = 0; e < 6; ++e) {
        const int inside = region[neighbour_of(grid, row, m, e)], step = e % 2 ? -1 : 1;
        const total rest = own ? six.c[e] - solutes[e / 2] : 0;
        if (own == inside && rest == 0) continue;
        const total there = singular(i + (e / 2 == 0) * step, j + (e / 2 == 1) * step, k + (e / 2 == 2) * step, place[0],
                                     place[1], n_atoms, atoms, charges);
        if (rest != 0 && !is_known) {
            here = singular(i, j, k, place[0], place[1], n_atoms, atoms, charges);
            is_known = 1;
        }
        if (rest != 0) sum += rest * (there - here);
        if (own != inside) sum += (own ? -1 : 1) * six.c[e] * there;
    }
    right[t] = sum;
}

// Adds the singular potential to the solution of the region.
kernel void add_singular(
    const ColourGrid grid, global const uchar *restrict region, global const total4 *restrict place, const int n_atoms,
    global const total4 *restrict atoms, global const total *restrict charges, global total *restrict potential)
{
    if (!IS_INNER_PLANE(grid)) return;
    for (int colour = 0; colour < 2; ++colour) {
        FOR_ROWS(j, grid) {
            const Row row = row_at(grid, colour, j, PLANE);
            FOR_NODES(m, grid, row) {
                if (region[row.own + m]) {
                    potential[row.own + m] +=
                        singular(2 * m + row.odd, j, PLANE, place[0], place[1], n_atoms, atoms, charges);
                }
            }
        }
    }
}
