// Interpolation from the nodes of a mesh to the points of a map, one axis at a time.
#include "common/real.clh"

#ifndef NODES
#error "NODES: of the mesh that a point takes values from along an axis"
#endif

// Along x: from rows of nodes to rows of points.
kernel void along_rows(
    const int n_nodes, const int n_points, const int n_rows, const int from_row,
    global const int *restrict first,       // (n_points) first node of each
    global const real *restrict weights,    // (n_points, NODES)
    global const real *restrict from,       // (all rows, n_nodes)
    global real *restrict to)               // (n_rows, n_points), for the rows from from_row on
{
    const int point = get_global_id(0), row = get_global_id(1);
    if (point >= n_points || row >= n_rows) return;
    global const real *nodes = from + (size_t)(from_row + row) * n_nodes + first[point], *own = weights + point * NODES;
    real sum = 0;
    #pragma unroll
    for (int k = 0; k < NODES; ++k) sum += own[k] * nodes[k];
    to[(size_t)row * n_points + point] = sum;
}

// Along y or z: whole rows (or planes) of n_inner numbers, WIDTH of them per work-item.
kernel void along_planes(
    const int n_nodes, const int n_points, const int n_inner, const int from_node,
    const ulong to_first,
    const int adds,                         // whether to add the sums to `to`
    global const int *restrict first,       // (n_points) first node of each, counted from from_node
    global const real *restrict weights,    // (n_points, NODES)
    global const real *restrict from,       // (n_outer, n_nodes, n_inner)
    global real *restrict to)               // starting at to_first (n_outer, n_points, n_inner), n_inner a multiple of WIDTH
{
    const int inner = WIDTH * get_global_id(0), point = get_global_id(1), outer = get_global_id(2);
    if (inner >= n_inner || point >= n_points) return;
    global const real *own = weights + point * NODES;
    global const real *nodes = from + ((size_t)outer * n_nodes + first[point] - from_node) * n_inner + inner;
    realv sum = 0;
    #pragma unroll
    for (int k = 0; k < NODES; ++k) sum += own[k] * LOAD((size_t)k * n_inner, nodes);
    const size_t at = ((size_t)outer * n_points + point) * n_inner + inner;
    global real *own_to = to + to_first;
    STORE(adds ? LOAD(at, own_to) + sum : sum, at, own_to);
}
