// A work-item owns a pair, and counts it for its atom.
kernel void count(
    const int n_pairs, global const int *atom_of,  // (n_pairs) first or second atom of each pair
    volatile global int *counts)                   // (n_atoms), initially zero
{
    const int p = get_global_id(0);
    if (p < n_pairs) atomic_inc(counts + atom_of[p]);
}
