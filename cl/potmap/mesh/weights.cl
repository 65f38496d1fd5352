// Sorts charges by the blocks of their first nodes (potmap/sort.clh), and computes the weights of the NODES nodes
// around each charge along each axis, by polynomials in the fraction of a spacing. Weights along x have BLOCK zeros on
// both sides, so that a row of nodes can be read from any start.
#include "common/real.clh"
#include "potmap/sort.clh"
#include "potmap/mesh/spread.clh"

#ifndef TERMS
#error "TERMS: of the polynomials"
#endif

// Distance of a coordinate beyond node number `node` from the origin [A]. In float32 the coordinate and the spacing
// have separate rounding errors, and the product is exact for near nodes.
INLINE real beyond(int node, real x, real rest, real4 spacing) {
    return fma((real)-node, spacing.x, x) + (rest - node * spacing.y);
}

// Last node that is not beyond a coordinate.
INLINE int node_before(real x, real rest, real4 spacing) {
    const int node = (int)floor(x / spacing.x);  // or an adjacent one, since the quotient is rounded
    const real past = beyond(node, x, rest, spacing);
    return past < 0 ? node - 1 : past < spacing.x ? node : node + 1;
}

// Finds the first node of each atom, and counts the atoms of blocks. One work-item per part of the atoms.
kernel void count_blocks(
    const int n_atoms, const int per_part,
    const real4 spacing,                    // of the nodes [A]; y = its rounding error
    const int4 low,                         // first nodes along x, y, z, relative to the origin
    const int4 blocks,                      // number of blocks along x, y, z
    const real4 least, const real4 most,    // corners of the box outside which atoms are ignored [A]; w = 0
    POSITIONS,
    global int *restrict counts,            // (n_parts, blocks z, y, x), initially 0
    global int4 *restrict homes)            // (n_atoms) first node of an atom; w = its index within its part and cell, or -1
{
    const int part = get_global_id(0), n_cells = blocks.x * blocks.y * blocks.z;
    const int end = min(n_atoms, (part + 1) * per_part);
    global int *own = counts + (size_t)part * n_cells;
    for (int atom = part * per_part; atom < end; ++atom) {
        const int also_y = n_atoms + atom, also_z = n_atoms + also_y;
        const real x = ROUNDED(atom), y = ROUNDED(also_y), z = ROUNDED(also_z);
        const int4 before = (int4)(NODES / 2 - 1, NODES / 2 - 1, NODES / 2 - 1, 0);
        const int4 node = (int4)(node_before(x, REST_OF(atom), spacing), node_before(y, REST_OF(also_y), spacing),
                                 node_before(z, REST_OF(also_z), spacing), 0);
        const int4 first = node - before - low, at = first / BLOCK;
        const bool counts_here = x > least.x && y > least.y && z > least.z && x < most.x && y < most.y && z < most.z;
        const bool inside =
            first.x >= 0 && first.y >= 0 && first.z >= 0 && at.x < blocks.x && at.y < blocks.y && at.z < blocks.z;
        const int cell = (at.z * blocks.y + at.y) * blocks.x + at.x;
        homes[atom] = (int4)(first.x, first.y, first.z, counts_here && inside ? own[cell]++ : -1);
    }
}

// Writes the first node and the weights of each atom to its sorted position. One work-item per atom.
kernel void node_weights(
    const int n_atoms, const int per_part, const real4 spacing, const int4 low, const int4 blocks,
    POSITIONS,
    global const real *restrict charges,    // (n_atoms)
    global const int4 *restrict homes,
    global const int *restrict counts,
    global const int *restrict starts,
    global const real *restrict pieces,     // (NODES, TERMS) coefficients, lowest power first
    global int4 *restrict first,            // (n_atoms) first node of each atom, sorted by block
    global real *restrict weights)          // (n_atoms, WEIGHTS) in this order
{
    const int atom = get_global_id(0);
    if (atom >= n_atoms || homes[atom].w < 0) return;
    const int4 home = homes[atom], at = home / BLOCK, node = home + low;
    const int cell = (at.z * blocks.y + at.y) * blocks.x + at.x, n_cells = blocks.x * blocks.y * blocks.z;
    const int to = place_of(atom, cell, home.w, per_part, n_cells, counts, starts);
    first[to] = (int4)(home.x, home.y, home.z, 0);
    global real *own = weights + (size_t)to * WEIGHTS;
    for (int k = 0; k < BLOCK; ++k) own[k] = own[BLOCK + NODES + k] = 0;
    for (int axis = 0; axis < 3; ++axis) {
        const int number = axis * n_atoms + atom, from = axis == 0 ? node.x : axis == 1 ? node.y : node.z;
        const real t = beyond(from + NODES / 2 - 1, ROUNDED(number), REST_OF(number), spacing) / spacing.x - (real)0.5;
        global real *along = axis == 0 ? own + BLOCK : own + Y_WEIGHTS + (axis - 1) * NODES;
        for (int k = 0; k < NODES; ++k) {
            global const real *powers = pieces + k * TERMS;
            real weight = powers[TERMS - 1];
            for (int term = TERMS - 2; term >= 0; --term) weight = weight * t + powers[term];
            along[k] = axis == 2 ? charges[atom] * weight : weight;
        }
    }
}
