// One work-item per pair (several pairs per work-item for long lists): energies are reduced by a tree in each group,
// and SCATTER selects how the gradient of a pair is added. Energies of many pairs cancel, so sums have a higher
// precision than their terms.
//
//   NAIVE    += and -= on the gradients of the atoms: work-items that share an atom race and lose updates. Wrong
//            by design.
//   ATOMIC   the same six updates, each atomic (common/atomics.clh)
//   STORE    the gradient is stored per pair; another kernel adds (nonbond/ladder/segments.cl)
#include "common/real.clh"
#include "nonbond/list.clh"
#include "common/exact.clh"
#include "shared/scatter"

#ifndef GROUP
#error "GROUP: work-items in a work-group, a power of two"
#endif
#ifndef SCATTER
#error "SCATTER: 0 racing updates, 1 atomic updates, 2 gradients stored by pair"
#endif
#if SCATTER == ATOMIC
#include "common/atomics.clh"
#endif

kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void nonbond_pairs(
    LIST_PARAMETERS,
    global real *restrict energies,  // (n_groups, 3) Lennard-Jones, Coulomb, GB [kcal/mol]
    global real *gradient)           // NAIVE, ATOMIC: (n_atoms, 3), initially zero; STORED: (3, n_pairs) [kcal/mol/step]
{
    local Exact scratch[3 * GROUP];
    Exact sums[3] = {exactly(0), exactly(0), exactly(0)};  // Lennard-Jones, Coulomb, GB
    for (int p = get_global_id(0); p < n_pairs; p += get_global_size(0)) {
        const Pair pair = PAIR(p);
        add_exactly(&sums[0], pair.lennard_jones);
        add_exactly(&sums[1], pair.coulomb);
        add_exactly(&sums[2], pair.gb);
#if SCATTER == NAIVE
        const int i = 3 * pairs[p].x, j = 3 * ATOM(pairs[p].y);
        gradient[i] += pair.gx;
        gradient[i + 1] += pair.gy;
        gradient[i + 2] += pair.gz;
        gradient[j] -= pair.gx;
        gradient[j + 1] -= pair.gy;
        gradient[j + 2] -= pair.gz;
#elif SCATTER == ATOMIC
        const int i = 3 * pairs[p].x, j = 3 * ATOM(pairs[p].y);
        atomic_add_real(gradient + i, pair.gx);
        atomic_add_real(gradient + i + 1, pair.gy);
        atomic_add_real(gradient + i + 2, pair.gz);
        atomic_add_real(gradient + j, -pair.gx);
        atomic_add_real(gradient + j + 1, -pair.gy);
        atomic_add_real(gradient + j + 2, -pair.gz);
#elif SCATTER == STORED
        gradient[p] = pair.gx;
        gradient[n_pairs + p] = pair.gy;
        gradient[2 * n_pairs + p] = pair.gz;
#endif
    }
    join_over_group(sums, scratch, get_local_id(0), GROUP, energies + 3 * get_group_id(0));
}
