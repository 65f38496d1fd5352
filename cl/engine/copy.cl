// Pieces of a buffer to places in another one, or in the same: a work-item a word of a piece; the third dimension counts pieces.
#include "common/real.clh"

kernel void copy_pieces(
    global const ulong *restrict places,  // (n, 3) of each piece: its first word, the first one of its copy, and its words
    global const ulong *source,
    global ulong *target)
{
    const size_t k = get_global_id(2);
    const ulong from = places[3 * k], to = places[3 * k + 1], n_words = places[3 * k + 2];
    for (ulong i = get_global_id(0); i < n_words; i += get_global_size(0)) target[to + i] = source[from + i];
}

// Zeros in their place.
kernel void clear_pieces(
    global const ulong *restrict places,  // (n, 3) as above; the first number is not used
    global ulong *target)
{
    const size_t k = get_global_id(2);
    const ulong to = places[3 * k + 1], n_words = places[3 * k + 2];
    for (ulong i = get_global_id(0); i < n_words; i += get_global_size(0)) target[to + i] = 0;
}
