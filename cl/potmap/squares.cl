// Sums of squares over the rows of a map, for its norm, to which the error is compared. One work-item per row.
#include "common/real.clh"

kernel void row_squares(
    const int n_points,                     // per row, without padding
    const int n_rows,                       // per slice, without padding
    const int pitch_x, const int pitch_y,   // points per row and rows per slice, with padding
    const int pitch_z,                      // slices per component, with padding
    global const real *restrict map,        // (components, pitch_z, pitch_y, pitch_x)
    global real *restrict sums)             // (components, n_slices, n_rows)
{
    const int row = get_global_id(0), slice = get_global_id(1), component = get_global_id(2);
    if (row >= n_rows) return;
    global const real *values = map + (((size_t)component * pitch_z + slice) * pitch_y + row) * pitch_x;
    realv squares = 0;
    int k = 0;
    for (; k + WIDTH <= n_points; k += WIDTH) {
        const realv some = LOAD(k, values);
        squares += some * some;
    }
    real sum = lane_sum(squares);
    for (; k < n_points; ++k) sum += values[k] * values[k];
    sums[((size_t)component * get_global_size(1) + slice) * n_rows + row] = sum;
}
