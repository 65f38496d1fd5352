// One loop over the pair list in one work-item, as it stands in PELE: the baseline of every speed-up.
#include "real.clh"
#include "nonbond_list.clh"
#include "sums.clh"

kernel void nonbond_sequential(
    LIST_ARGUMENTS,
    global real *restrict energies,  // (3) Lennard-Jones, Coulomb, GB [kcal/mol]
    global real *restrict gradient)  // (n_atoms, 3), zero before [kcal/mol/A]
{
    real sum[3] = {0, 0, 0}, carry[3] = {0, 0, 0};
    for (int p = 0; p < n_pairs; ++p) {
        const Pair pair = PAIR(p);
        add_exactly(&sum[0], &carry[0], pair.lennard_jones);
        add_exactly(&sum[1], &carry[1], pair.coulomb);
        add_exactly(&sum[2], &carry[2], pair.gb);
#if GRADIENT
        const int i = 3 * pairs[p].x, j = 3 * ATOM(pairs[p].y);
        gradient[i] += pair.slope * pair.dx;
        gradient[i + 1] += pair.slope * pair.dy;
        gradient[i + 2] += pair.slope * pair.dz;
        gradient[j] -= pair.slope * pair.dx;
        gradient[j + 1] -= pair.slope * pair.dy;
        gradient[j + 2] -= pair.slope * pair.dz;
#endif
    }
    for (int term = 0; term < 3; ++term) energies[term] = sum[term] + carry[term];
}
