// Weighted sums from nodes to atoms, and scatter to nodes. One work-item per atom or node.
#include "common/real.clh"
#include "common/total.clh"
#include "pb/nodes.clh"

// Sums over the nodes around each atom.
kernel void sum_weighted(
    const int n_atoms,
    const int n_nodes,                      // per atom
    global const uint *restrict nodes,      // (n_atoms, n_nodes) indices in `potential`
    global const total *restrict weights,   // (n_atoms, n_nodes)
    global const total *restrict potential,
    global total *restrict found)           // (n_atoms)
{
    const int a = get_global_id(0);
    if (a >= n_atoms) return;
    total sum = 0;
    for (int t = 0; t < n_nodes; ++t) sum += weights[a * n_nodes + t] * potential[nodes[a * n_nodes + t]];
    found[a] = sum;
}

// Adds values at nodes, (n_nodes, 3) i, j, k.
kernel void add_at(
    const ColourGrid grid, const int n_nodes, global const int *restrict nodes, global const total *restrict values,
    global total *restrict array)
{
    const int t = get_global_id(0);
    if (t >= n_nodes) return;
    array[node_at(grid, nodes[3 * t], nodes[3 * t + 1], nodes[3 * t + 2])] += values[t];
}
