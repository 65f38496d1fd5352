// Pair loop on the device: a work-group owns atom i, its work-items stride over j, and a tree in local memory adds their
// sums. A second kernel (solvent/ladder/radii.cl) turns the sums into radii.
#include "common/real.clh"
#include "solvent/ladder/term.clh"

#ifndef GROUP
#error "GROUP: work-items in a work-group, a power of two"
#endif

kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void born_sums_pair(
    const int n_atoms,
    TERM_ARGUMENTS(restrict),
    global real *restrict sums)          // (n_atoms) Born integral [1/A]
{
    local real partial[GROUP];
    const int i = get_global_id(0) / GROUP, item = get_local_id(0);  // the group's id would forget the global offset
    const Own own = own_atom(i, OF_TERMS);
    real sum = 0;
    for (int j = item; j < n_atoms; j += GROUP)
        if (j != i) sum += born_term(&own, j, OF_TERMS);
    partial[item] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int half_size = GROUP / 2; half_size > 0; half_size /= 2) {
        if (item < half_size) partial[item] += partial[item + half_size];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (item == 0) sums[i] = partial[0];
}
