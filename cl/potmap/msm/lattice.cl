// Lattice cutoff sum of multilevel summation: the potential at the points of a lattice from its charges within the
// range of a table of weights. Each work-group owns a block of points of a slice. It loads one plane of charges after
// the other into local memory, with zeros beyond the lattice. Each work-item then sums POINTS_Y rows of POINTS_X
// vectors. docs/theory/msm.md, eq. 6
#include "common/real.clh"

#ifndef ITEMS_X
#error "ITEMS_X: work-items of a group along x"
#endif
#ifndef ITEMS_Y
#error "ITEMS_Y: work-items of a group along y"
#endif
#ifndef POINTS_X
#error "POINTS_X: vectors of points along x that a work-item owns"
#endif
#ifndef POINTS_Y
#error "POINTS_Y: rows in which a work-item owns them"
#endif
#ifndef ROOM
#error "ROOM: charges of a plane that a block reaches, at most"
#endif

// A group of one work-item, as on CPUs, uses private memory; PoCL does not inline vector loads from local memory.
#if ITEMS_X * ITEMS_Y > 1
#define SHARED local
#else
#define SHARED private
#endif

#define BLOCK_X (ITEMS_X * POINTS_X * WIDTH)
#define BLOCK_Y (ITEMS_Y * POINTS_Y)
#define EACH_POINT(j, c) \
    _Pragma("unroll") for (int j = 0; j < POINTS_Y; ++j) _Pragma("unroll") for (int c = 0; c < POINTS_X; ++c)

typedef struct { realv of[POINTS_Y][POINTS_X]; } Sums;

INLINE void clear(Sums *sums) {
    EACH_POINT(j, c) sums->of[j][c] = 0;
}

// Charges of rows from low_y on and columns from low_x on; any may be beyond the lattice.
INLINE void load_plane(
    SHARED real *tile, int rows, int columns, int low_x, int low_y, int4 shape, global const real *plane)
{
    for (int row = get_local_id(1); row < rows; row += ITEMS_Y) {
        const int y = low_y + row;
        const bool inside = y >= 0 && y < shape.y;
        // Columns from `begin` to `end` - 1 are on the lattice.
        const int begin = inside ? clamp(-low_x, 0, columns) : columns, end = clamp(shape.x - low_x, begin, columns);
        SHARED real *to = tile + row * columns;
        global const real *from = plane + (size_t)(inside ? y : 0) * shape.x;
        for (int k = get_local_id(0); k < begin; k += ITEMS_X) to[k] = 0;
        for (int k = begin + get_local_id(0); k < end; k += ITEMS_X) to[k] = from[low_x + k];
        for (int k = end + get_local_id(0); k < columns; k += ITEMS_X) to[k] = 0;
    }
}

INLINE void store_lanes(realv sum, int x, int nx, global real *row) {
    if (x + WIDTH <= nx) {
        STORE(sum, x, row);
        return;
    }
    real lanes[WIDTH];
    STORE(sum, 0, lanes);
    for (int k = 0; x + k < nx; ++k) row[x + k] = lanes[k];
}

kernel __attribute__((reqd_work_group_size(ITEMS_X, ITEMS_Y, 1))) void msm_lattice(
    const int4 shape,                       // number of lattice points along x, y, z
    const int4 reach,                       // range of the weights along x, y, z
    const real scale,                       // of the weights
    global const int *restrict extents,     // (2 reach.z + 1, 2 reach.y + 1) range along x of a row of weights, -1 for none
    global const real *restrict weights,    // (2 reach.z + 1, 2 reach.y + 1, 2 reach.x + 1)
    global const real *restrict charges,    // (nz, ny, nx)
    global real *restrict potentials)
{
    SHARED real tile[ROOM];
    const int low_x = get_group_id(0) * BLOCK_X, low_y = get_group_id(1) * BLOCK_Y, z = get_group_id(2);
    const int own_x = get_local_id(0) * WIDTH, own_y = get_local_id(1) * POINTS_Y;
    const int columns = BLOCK_X + 2 * reach.x, rows = BLOCK_Y + 2 * reach.y, span = 2 * reach.y + 1;
    Sums total;
    clear(&total);
    for (int plane = max(0, z - reach.z); plane <= min(shape.z - 1, z + reach.z); ++plane) {
        barrier(CLK_LOCAL_MEM_FENCE);
        load_plane(
            tile, rows, columns, low_x - reach.x, low_y - reach.y, shape, charges + (size_t)plane * shape.y * shape.x);
        barrier(CLK_LOCAL_MEM_FENCE);
        Sums of_plane;
        clear(&of_plane);
        for (int row = 0; row < span; ++row) {
            const int line = (plane - z + reach.z) * span + row, extent = extents[line];
            global const real *of_line = weights + line * (2 * reach.x + 1) + reach.x;
            SHARED const real *own = tile + (own_y + row) * columns + own_x + reach.x;
            for (int k = -extent; k <= extent; ++k) {
                const real weight = of_line[k];
                EACH_POINT(j, c) of_plane.of[j][c] += weight * LOAD(j * columns + c * ITEMS_X * WIDTH + k, own);
            }
        }
        EACH_POINT(j, c) total.of[j][c] += of_plane.of[j][c];
    }
    EACH_POINT(j, c) {
        const int y = low_y + own_y + j;
        if (y < shape.y)
            store_lanes(
                scale * total.of[j][c], low_x + own_x + c * ITEMS_X * WIDTH, shape.x,
                potentials + ((size_t)z * shape.y + y) * shape.x);
    }
}
