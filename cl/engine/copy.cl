// Rows to other rows of the same molecules, with all that they have of their own: a work-item a word of a row; the second
// dimension counts pairs of rows.
#include "common/real.clh"

kernel void copy_rows(
    global const ulong *restrict from,   // (n) first word of each source
    global const ulong *restrict to,     // (n) first word of each target
    global const int *restrict n_words,  // (n) of each
    global const ulong *source,
    global ulong *target)
{
    const int k = get_global_id(1);
    for (size_t i = get_global_id(0); i < (size_t)n_words[k]; i += get_global_size(0)) target[to[k] + i] = source[from[k] + i];
}
