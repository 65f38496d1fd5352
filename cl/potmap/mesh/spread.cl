// Spreads charges to the nodes of a mesh. Each work-group owns a block of nodes and adds the atoms that reach it, in
// order: no atomics, and results are bitwise reproducible.
#include "common/real.clh"
#include "common/total.clh"
#include "potmap/mesh/spread.clh"

#ifndef ITEMS
#error "ITEMS: work-items of a group, a divisor of the BLOCK * BLOCK rows of its nodes"
#endif

#define ROWS (BLOCK * BLOCK / ITEMS)
#define REACH ((NODES + BLOCK - 2) / BLOCK)  // blocks that a charge may reach beyond the one of its first node

kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void spread(
    const int4 shape,                      // number of nodes along x, y, z
    const int4 blocks,                     // number of blocks along x, y, z
    global const int *restrict starts,     // (n_blocks + 1) index of the first atom whose first node is in each block
    global const int4 *restrict first,     // (n_atoms) first node of each atom
    global const real *restrict weights,   // (n_atoms, WEIGHTS)
    global real *restrict density)         // (nz, ny, nx)
{
    const int item = get_local_id(0);
    const int4 own = (int4)(get_group_id(0), get_group_id(1), get_group_id(2), 0), low = own * BLOCK;
    total sums[ROWS][BLOCK];
    for (int row = 0; row < ROWS; ++row)
        for (int k = 0; k < BLOCK; ++k) sums[row][k] = 0;
    for (int bz = max(0, own.z - REACH); bz <= own.z; ++bz)
        for (int by = max(0, own.y - REACH); by <= own.y; ++by) {
            const int line = (bz * blocks.y + by) * blocks.x;
            // Blocks of a row are consecutive, and so are their atoms.
            const int end = starts[line + own.x + 1];
            for (int atom = starts[line + max(0, own.x - REACH)]; atom < end; ++atom) {
                const int4 from = low - first[atom];
                if (from.x >= NODES || from.y >= NODES || from.z >= NODES || from.y <= -BLOCK || from.z <= -BLOCK) continue;
                global const real *of_atom = weights + (size_t)atom * WEIGHTS, *along_x = of_atom + BLOCK + from.x;
                global const real *along_y = of_atom + Y_WEIGHTS, *along_z = along_y + NODES;
                for (int row = 0; row < ROWS; ++row) {
                    const int in_block = row * ITEMS + item;
                    const int y = from.y + in_block % BLOCK, z = from.z + in_block / BLOCK;
                    if (y < 0 || y >= NODES || z < 0 || z >= NODES) continue;
                    const real share = along_y[y] * along_z[z];
                    #pragma unroll
                    for (int k = 0; k < BLOCK; ++k) sums[row][k] += share * along_x[k];
                }
            }
        }
    for (int row = 0; row < ROWS; ++row) {
        const int in_block = row * ITEMS + item, y = low.y + in_block % BLOCK, z = low.z + in_block / BLOCK;
        if (y >= shape.y || z >= shape.z) continue;
        global real *nodes = density + ((size_t)z * shape.y + y) * shape.x;
        for (int k = 0; k < BLOCK && low.x + k < shape.x; ++k) nodes[low.x + k] = sums[row][k];
    }
}
