// Lists of the spheres and probes near each block of nodes: they are counted, and after a prefix sum of the counts they
// are written. One work-item per block, or per probe.
#include "common/real.clh"
#include "pb/spheres.clh"

// A block with its outgoing edges.
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

// Whether a point is within the distance `far` of a box.
INLINE int is_near(Box box, total4 point, total far) {
    const total3 apart = fmax((total3)(0), fmax(box.low - point.xyz, point.xyz - box.high));
    return dot(apart, apart) <= far * far;
}

// Number of spheres that extend to within the distance `reach` of a box; if `writes`, they are written to listed[at]
// and on, sorted by number if `in_order`.
INLINE int spheres_near(Box box, total reach, Cells cells, global int *listed, size_t at, int writes, int in_order) {
    const total far = cells.place[0].w + reach;
    const int4 first = cell_of(box.low - far, cells), last = cell_of(box.high + far, cells);
    int count = 0;
    for (int k = first.z; k <= last.z; ++k) {
        for (int j = first.y; j <= last.y; ++j) {
            const int row = (k * cells.shape.y + j) * cells.shape.x;
            for (int t = cells.starts[row + first.x]; t < cells.starts[row + last.x + 1]; ++t) {
                const total4 sphere = cells.spheres[cells.members[t]];
                if (!is_near(box, sphere, sphere.w + reach)) continue;
                size_t slot = at + count++;
                if (!writes) continue;
                for (; in_order && slot > at && listed[slot - 1] > cells.members[t]; --slot) {
                    listed[slot] = listed[slot - 1];
                }
                listed[slot] = cells.members[t];
            }
        }
    }
    return count;
}

// n_blocks : per grid; n_rows : number of grids, which differ only in their origins
// origins : (n_rows) of the grids [A]; spacing : (1) [A]; reach : [A]
kernel void count_spheres(
    const int n_blocks, const int n_rows, const int4 blocks, global const total4 *restrict origins,
    global const total4 *restrict spacing, const total reach, CELLS, global int *restrict counts)
{
    const int block = get_global_id(0), row = block / n_blocks;
    if (row >= n_rows) return;
    const Cells cells = CELLS_OF(row);
    const Box box = box_of(block - row * n_blocks, blocks, origins[row], spacing[0]);
    counts[block] = spheres_near(box, reach, cells, 0, 0, 0, 0);
}

// list_starts : (n_rows * n_blocks + 1) index of each block's first sphere in `listed`
kernel void list_spheres(
    const int n_blocks, const int n_rows, const int4 blocks, global const total4 *restrict origins,
    global const total4 *restrict spacing, const total reach, CELLS, const int in_order,
    global const int *restrict list_starts, global int *restrict listed)
{
    const int block = get_global_id(0), row = block / n_blocks;
    if (row >= n_rows) return;
    const Cells cells = CELLS_OF(row);
    const Box box = box_of(block - row * n_blocks, blocks, origins[row], spacing[0]);
    spheres_near(box, reach, cells, listed, list_starts[block], 1, in_order);
}

// Block of a point along each axis, or one beyond the grid.
INLINE int4 block_at(total3 point, int4 blocks, const total4 origin, const total4 spacing) {
    const total3 at = (point - origin.xyz) / (BLOCK * spacing.xyz);
    const int4 found = {
        (int)clamp(floor(at.x), (total)-1, (total)blocks.x), (int)clamp(floor(at.y), (total)-1, (total)blocks.y),
        (int)clamp(floor(at.z), (total)-1, (total)blocks.z), 0};
    return found;
}

// Loops over the blocks of a row that contain an atom and are within the distance `far` of a probe.
#define FOR_BLOCKS(block, row, point, far)                                                      \
    const int first_ = (row) * blocks.x * blocks.y * blocks.z;                                  \
    const int4 low_ = max(block_at((point).xyz - (far), blocks, origins[row], spacing[0]), (int4)0); \
    const int4 high_ = min(block_at((point).xyz + (far), blocks, origins[row], spacing[0]), blocks - 1); \
    for (int k = low_.z; k <= high_.z; ++k)                                                     \
        for (int j = low_.y; j <= high_.y; ++j)                                                 \
            for (int i = low_.x, block = first_ + (k * blocks.y + j) * blocks.x + i; i <= high_.x; ++i, ++block) \
                if (atom_starts[block] < atom_starts[block + 1]                                 \
                    && is_near(box_of(block - first_, blocks, origins[row], spacing[0]), point, far))

// rows_of_probes : (n_probes); atom_starts : (n_rows * n_blocks + 1) of the lists of atoms; far : [A]. One work-item
// per probe.
kernel void count_probes(
    const int n_probes, const int4 blocks, global const total4 *restrict origins, global const total4 *restrict spacing,
    const total far, global const int *restrict atom_starts, global const total4 *restrict probes,
    global const int *restrict rows_of_probes, global int *restrict counts)
{
    const int t = get_global_id(0);
    if (t >= n_probes) return;
    const int row = rows_of_probes[t];
    FOR_BLOCKS(block, row, probes[t], far) atomic_inc(counts + block);
}

// Fills the lists from their ends, in any order, which does not affect results. counts : from count_probes, decremented
// to 0
kernel void list_probes(
    const int n_probes, const int4 blocks, global const total4 *restrict origins, global const total4 *restrict spacing,
    const total far, global const int *restrict atom_starts, global const total4 *restrict probes,
    global const int *restrict rows_of_probes, global const int *restrict list_starts, global int *restrict counts,
    global int *restrict listed)
{
    const int t = get_global_id(0);
    if (t >= n_probes) return;
    const int row = rows_of_probes[t];
    FOR_BLOCKS(block, row, probes[t], far) listed[list_starts[block] + atomic_dec(counts + block) - 1] = t;
}
