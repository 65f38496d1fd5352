// One work-item per pair (several pairs per work-item for long lists): energies only, reduced by a tree in each group.
// Energies of many pairs cancel, so sums have a higher precision than their terms.
#include "common/real.clh"
#include "nonbond/list.clh"
#include "common/exact.clh"

#ifndef GROUP
#error "GROUP: work-items in a work-group, a power of two"
#endif

kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void pair_energies(
    LIST_PARAMETERS,
    global real *restrict energies)  // (n_groups, 3) Lennard-Jones, Coulomb, GB [kcal/mol]
{
    local Exact scratch[3 * GROUP];
    Exact sums[3] = {exactly(0), exactly(0), exactly(0)};  // Lennard-Jones, Coulomb, GB
    for (int p = get_global_id(0); p < n_pairs; p += get_global_size(0)) {
        const Pair pair = PAIR(p);
        add_exactly(&sums[0], pair.lennard_jones);
        add_exactly(&sums[1], pair.coulomb);
        add_exactly(&sums[2], pair.gb);
    }
    join_over_group(sums, scratch, get_local_id(0), GROUP, energies + 3 * get_group_id(0));
}
