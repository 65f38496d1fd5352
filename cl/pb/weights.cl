// Potentials at atoms: sums over nodes around each.
#include "common/real.clh"
#include "common/total.clh"

// A work-item an atom.
kernel void sum_weighted(
    const int n_atoms,
    const int n_nodes,                      // of an atom
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
