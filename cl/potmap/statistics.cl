// Statistics of the maps of many frames at every point, updated map by map: Welford's mean and sum of squared
// deviations (Technometrics 4, 419 (1962)), minimum and maximum. One work-item per point, so results are bitwise
// reproducible.
#include "common/real.clh"
#include "common/total.clh"

// Adds a map; n_maps : number of maps including it. The first one ignores the contents of the buffers.
kernel void add_map(
    const int n_points,
    const int n_maps,
    global const real *restrict map,
    global total *restrict means,
    global total *restrict squares,
    global real *restrict lowest,
    global real *restrict highest)
{
    const int point = get_global_id(0);
    if (point >= n_points) return;
    const real value = map[point];
    const bool is_first = n_maps == 1;
    const total before = is_first ? (total)value : means[point], away = value - before, mean = before + away / n_maps;
    means[point] = mean;
    squares[point] = is_first ? (total)0 : squares[point] + away * (value - mean);
    lowest[point] = is_first ? value : fmin(lowest[point], value);
    highest[point] = is_first ? value : fmax(highest[point], value);
}

// Means as reals.
kernel void mean_values(const int n_points, global const total *restrict means, global real *restrict to) {
    const int point = get_global_id(0);
    if (point < n_points) to[point] = (real)means[point];
}

// Population standard deviations: the sum is divided by the number of maps.
kernel void deviations(
    const int n_points, const int n_maps, global const total *restrict squares, global real *restrict to)
{
    const int point = get_global_id(0);
    if (point < n_points) to[point] = (real)sqrt(squares[point] / n_maps);
}

// Values of a map at a few points.
kernel void values_at(
    const int n_points, global const int *restrict points, global const real *restrict map, global real *restrict to)
{
    const int k = get_global_id(0);
    if (k < n_points) to[k] = map[points[k]];
}
