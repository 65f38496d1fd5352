// Pair loop on the device: one work-group per atom i, whose work-items stride over j. A tree in local memory reduces
// their sums. The first work-item applies the radius function.
#include "common/real.clh"
#include "physics/gb_radius.clh"
#include "solvent/term.clh"

#ifndef GROUP
#error "GROUP: work-items in a work-group, a power of two"
#endif

kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void born_sums_pair(
    const int n_atoms,
    RADIUS_PARAMETER,                    // physics/gb_radius.clh
    const Reaches reaches,
    NECK_PARAMETERS
    global const real4 *restrict atoms,  // Spheres, solvent/term.clh
    global const real *restrict rho,
    global const real *restrict radii,   // (n_atoms) intrinsic radius [A]
    global real *restrict psi,           // (n_atoms)
    global real *restrict born)          // (n_atoms) Born radius [A]
{
    local real partial[GROUP];
    // A long launch is split, and group ids restart at 0 in each part.
    const int i = get_group_id(0) + get_global_offset(0) / GROUP, item = get_local_id(0);
    const Spheres all = {reaches, NECKS_GIVEN, atoms, rho};
    const Own own = own_atom(i, &all);
    real sum = 0;
    for (int j = item; j < n_atoms; j += GROUP)
        if (j != i) sum += born_term(&own, j, &all);
    partial[item] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int half_size = GROUP / 2; half_size > 0; half_size /= 2) {
        if (item < half_size) partial[item] += partial[item + half_size];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (item == 0) {
        psi[i] = rho[i] * partial[0];
        born[i] = born_radius(psi[i], rho[i], radii[i], constants_of(radius_constants, i));
    }
}
