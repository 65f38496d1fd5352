// Pieces of a buffer to places in another one, or in the same: a work-item a word of a piece; the second dimension counts pieces.
#include "common/real.clh"

kernel void copy_pieces(
    const int n,
    global const ulong *restrict places,  // (3, n) of each piece: its first word, the first one of its copy, and its words
    global const ulong *source,
    global ulong *target)
{
    const int k = get_global_id(1);
    const ulong from = places[k], to = places[n + k], n_words = places[2 * n + k];
    for (ulong i = get_global_id(0); i < n_words; i += get_global_size(0)) target[to + i] = source[from + i];
}

// Zeros in their place.
kernel void clear_pieces(
    const int n,
    global const ulong *restrict places,  // (3, n) as above; the first row is not used
    global ulong *target)
{
    const int k = get_global_id(1);
    const ulong to = places[n + k], n_words = places[2 * n + k];
    for (ulong i = get_global_id(0); i < n_words; i += get_global_size(0)) target[to + i] = 0;
}
