// A work-item owns a pair, and writes its number to the next free element of its atom's segment.
kernel void fill(
    const int n_pairs, global const int *atom_of,  // (n_pairs) first or second atom of each pair
    volatile global int *next,                     // (n_atoms) where each segment begins
    global int *index)                             // (n_pairs) numbers of pairs, atom by atom
{
    const int p = get_global_id(0);
    if (p < n_pairs) index[atomic_inc(next + atom_of[p])] = p;
}
