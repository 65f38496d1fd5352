// Lists of the spheres and of the probes near each block of nodes. A work-item does a block: it counts, and once the
// counts are added up it writes.
#include "common/real.clh"
#include "pb/spheres.clh"

// A block with the edges that lead from it.
typedef struct {
    total3 low, high;
} Box;

INLINE Box box_of(int block, int4 blocks, const total4 origin, const total4 spacing) {
    const int i = block % blocks.x, j = block / blocks.x % blocks.y, k = block / blocks.x / blocks.y;
    const total3 size = BLOCK * spacing.xyz;
    const total3 low = origin.xyz + (total3)(i, j, k) * size;
    const Box box = {low, low + size};
    return box;
}

// Tells if a point is as near to a box as `far`.
INLINE int is_near(Box box, total4 point, total far) {
    const total3 apart = fmax((total3)(0), fmax(box.low - point.xyz, point.xyz - box.high));
    return dot(apart, apart) <= far * far;
}

// Spheres that reach as near to a box as `reach`; they are written to listed[at] and on where `writes`. Returns how many.
INLINE int spheres_near(Box box, total reach, CELLS_TAKEN, global int *listed, size_t at, int writes) {
    const total far = place[0].w + reach;
    const int4 first = cell_of(box.low - far, cells, place), last = cell_of(box.high + far, cells, place);
    int count = 0;
    for (int k = first.z; k <= last.z; ++k) {
        for (int j = first.y; j <= last.y; ++j) {
            const int row = (k * cells.y + j) * cells.x;
            for (int t = cell_starts[row + first.x]; t < cell_starts[row + last.x + 1]; ++t) {
                const total4 sphere = cell_spheres[cell_members[t]];
                if (!is_near(box, sphere, sphere.w + reach)) continue;
                if (writes) listed[at + count] = cell_members[t];
                ++count;
            }
        }
    }
    return count;
}

// Probes as near to a box as `far`, of the atoms that are listed for its block.
INLINE int probes_near(
    Box box, total far, int block, SPHERES_TAKEN, global const int *probe_starts, global const total4 *probes,
    global int *listed, size_t at, int writes)
{
    int count = 0;
    for (int a = starts[block]; a < starts[block + 1]; ++a) {
        for (int t = probe_starts[members[a]]; t < probe_starts[members[a] + 1]; ++t) {
            if (!is_near(box, probes[t], far)) continue;
            if (writes) listed[at + count] = t;
            ++count;
        }
    }
    return count;
}

// origin, spacing : (1) of the grid [A]; reach : [A]
kernel void count_spheres(
    const int n_blocks, const int4 blocks, global const total4 *restrict origin, global const total4 *restrict spacing,
    const total reach, CELLS, global int *restrict counts)
{
    const int block = get_global_id(0);
    if (block >= n_blocks) return;
    counts[block] = spheres_near(box_of(block, blocks, origin[0], spacing[0]), reach, CELLS_PASSED, 0, 0, 0);
}

// list_starts : (n_blocks + 1) of a block's spheres among `listed`
kernel void list_spheres(
    const int n_blocks, const int4 blocks, global const total4 *restrict origin, global const total4 *restrict spacing,
    const total reach, CELLS, global const int *restrict list_starts, global int *restrict listed)
{
    const int block = get_global_id(0);
    if (block >= n_blocks) return;
    spheres_near(
        box_of(block, blocks, origin[0], spacing[0]), reach, CELLS_PASSED, listed, list_starts[block], 1);
}

// probe_starts : (atoms + 1) of an atom's probes among `probes`; far : [A]
kernel void count_probes(
    const int n_blocks, const int4 blocks, global const total4 *restrict origin, global const total4 *restrict spacing,
    const total far, SPHERES(atom), global const int *restrict probe_starts, global const total4 *restrict probes,
    global int *restrict counts)
{
    const int block = get_global_id(0);
    if (block >= n_blocks) return;
    const Box box = box_of(block, blocks, origin[0], spacing[0]);
    counts[block] = probes_near(box, far, block, SPHERES_PASSED(atom), probe_starts, probes, 0, 0, 0);
}

kernel void list_probes(
    const int n_blocks, const int4 blocks, global const total4 *restrict origin, global const total4 *restrict spacing,
    const total far, SPHERES(atom), global const int *restrict probe_starts, global const total4 *restrict probes,
    global const int *restrict list_starts, global int *restrict listed)
{
    const int block = get_global_id(0);
    if (block >= n_blocks) return;
    const Box box = box_of(block, blocks, origin[0], spacing[0]);
    probes_near(box, far, block, SPHERES_PASSED(atom), probe_starts, probes, listed, list_starts[block], 1);
}
