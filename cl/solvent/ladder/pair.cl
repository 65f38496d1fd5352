// Pair loop on the device: a work-group owns atom i, its work-items stride over j, and a tree in local memory adds their
// sums. A second kernel (solvent/ladder/radii.cl) turns the sums into radii.
#include "common/real.clh"
#include "physics/hct.clh"

#ifndef GROUP
#error "GROUP: work-items in a work-group, a power of two"
#endif

kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void born_sums_pair(
    const int n_atoms,
    global const real4 *restrict atoms,  // (n_atoms) x, y, z, scaled radius [A]
    global const real *restrict rho,     // (n_atoms) offset radius [A]
    global real *restrict sums)          // (n_atoms) Born integral [1/A]
{
    local real partial[GROUP];
    const int i = get_global_id(0) / GROUP, item = get_local_id(0);  // the group's id would forget the global offset
    const real4 own = atoms[i];
    real sum = 0;
    for (int j = item; j < n_atoms; j += GROUP) {
        const real4 other = atoms[j];
        const real dx = own.x - other.x, dy = own.y - other.y, dz = own.z - other.z;
        if (j != i) sum += hct_term(sqrt(dx * dx + dy * dy + dz * dz), rho[i], other.w);
    }
    partial[item] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int half_size = GROUP / 2; half_size > 0; half_size /= 2) {
        if (item < half_size) partial[item] += partial[item + half_size];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (item == 0) sums[i] = partial[0];
}
