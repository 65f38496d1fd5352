// Copies pieces of a buffer to another buffer, or within it: one work-item per word of a piece; the third dimension
// counts pieces.
#include "common/real.clh"

kernel void copy_pieces(
    global const ulong *restrict places,  // (n, 3) of each piece: its first word, the first word of its copy, number of words
    global const ulong *source,
    global ulong *target)
{
    const size_t k = get_global_id(2);
    const ulong from = places[3 * k], to = places[3 * k + 1], n_words = places[3 * k + 2];
    for (ulong i = get_global_id(0); i < n_words; i += get_global_size(0)) target[to + i] = source[from + i];
}

// Fills pieces with zeros.
kernel void clear_pieces(
    global const ulong *restrict places,  // (n, 3) as above; the first number is not used
    global ulong *target)
{
    const size_t k = get_global_id(2);
    const ulong to = places[3 * k + 1], n_words = places[3 * k + 2];
    for (ulong i = get_global_id(0); i < n_words; i += get_global_size(0)) target[to + i] = 0;
}
