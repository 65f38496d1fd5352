// Adds for each atom the stored gradients of pairs in which it is first, and subtracts those in which it is second.
//
// segment_sums: one work-item per atom loops over its segments. group_sums: one work-group per atom, for segments of
// any length; its work-items add every GROUP-th pair, and a tree in local memory reduces their sums.
#include "common/real.clh"
#include "common/sums.clh"

#ifndef GROUP
#error "GROUP: work-items in a work-group of group_sums, a power of two"
#endif
#ifndef SORTED_FIRSTS
#error "SORTED_FIRSTS: 1 where the stored gradients are sorted by first atom, 0 where an index list says which are whose"
#endif

#if SORTED_FIRSTS
#define FIRST_PAIR(index) (index)
#else
#define FIRST_PAIR(index) firsts[index]
#endif

#define SEGMENT_PARAMETERS \
    const int n_atoms, \
    const int n_pairs, \
    global const real *restrict stored,        /* (3, n_pairs) gradients by pair [kcal/mol/step] */ \
    global const int *restrict firsts,         /* (n_pairs) pairs sorted by their first atom */ \
    global const int *restrict first_offsets,  /* (n_atoms + 1) index of each atom's segment in it */ \
    global const int *restrict seconds,        /* (n_pairs) pairs sorted by their second atom */ \
    global const int *restrict second_offsets  /* (n_atoms + 1) */

kernel void segment_sums(SEGMENT_PARAMETERS, global real *restrict gradient /* (n_atoms, 3) [kcal/mol/step] */) {
    const int i = get_global_id(0);
    if (i >= n_atoms) return;
    real x = 0, y = 0, z = 0;
    for (int index = first_offsets[i]; index < first_offsets[i + 1]; ++index) {
        const int p = FIRST_PAIR(index);
        x += stored[p];
        y += stored[n_pairs + p];
        z += stored[2 * n_pairs + p];
    }
    for (int index = second_offsets[i]; index < second_offsets[i + 1]; ++index) {
        const int p = seconds[index];
        x -= stored[p];
        y -= stored[n_pairs + p];
        z -= stored[2 * n_pairs + p];
    }
    gradient[3 * i] = x;
    gradient[3 * i + 1] = y;
    gradient[3 * i + 2] = z;
}

kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void group_sums(SEGMENT_PARAMETERS, global real *restrict gradient /* (n_atoms, 3) [kcal/mol/step] */) {
    local real scratch[3 * GROUP];
    const int i = get_group_id(0), item = get_local_id(0);
    real x = 0, y = 0, z = 0;
    for (int index = first_offsets[i] + item; index < first_offsets[i + 1]; index += GROUP) {
        const int p = FIRST_PAIR(index);
        x += stored[p];
        y += stored[n_pairs + p];
        z += stored[2 * n_pairs + p];
    }
    for (int index = second_offsets[i] + item; index < second_offsets[i + 1]; index += GROUP) {
        const int p = seconds[index];
        x -= stored[p];
        y -= stored[n_pairs + p];
        z -= stored[2 * n_pairs + p];
    }
    add_over_group(x, y, z, scratch, item, GROUP, gradient + 3 * i);
}
