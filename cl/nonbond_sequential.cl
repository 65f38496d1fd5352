// One loop over the pair list in one work-item, as it stands in PELE: the baseline of every speed-up. Energies are summed in
// short runs, and the runs exactly, so that float32 keeps its digits over millions of pairs.
#include "real.clh"
#include "nonbond_list.clh"
#include "sums.clh"

#define RUN 256

kernel void nonbond_sequential(
    LIST_ARGUMENTS,
    global real *restrict energies,  // (3) Lennard-Jones, Coulomb, GB [kcal/mol]
    global real *restrict gradient)  // (n_atoms, 3), zero before [kcal/mol/step]
{
    real sum[3] = {0, 0, 0}, carry[3] = {0, 0, 0};
    for (int start = 0; start < n_pairs; start += RUN) {
        const int end = min(start + RUN, n_pairs);
        real lennard_jones = 0, coulomb = 0, gb = 0;
        for (int p = start; p < end; ++p) {
            const Pair pair = PAIR(p);
            lennard_jones += pair.lennard_jones;
            coulomb += pair.coulomb;
            gb += pair.gb;
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
        add_exactly(&sum[0], &carry[0], lennard_jones);
        add_exactly(&sum[1], &carry[1], coulomb);
        add_exactly(&sum[2], &carry[2], gb);
    }
    for (int term = 0; term < 3; ++term) energies[term] = sum[term] + carry[term];
}
