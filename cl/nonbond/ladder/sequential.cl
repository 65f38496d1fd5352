// One loop over the pair list in one work-item, as in PELE: the baseline of every speed-up. Energies are summed in
// float64 if the device supports it, to preserve accuracy over millions of pairs.
#include "common/real.clh"
#include "nonbond/list.clh"

#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef double sum_t;
#else
typedef real sum_t;
#endif

kernel void nonbond_sequential(
    LIST_PARAMETERS,
    global real *restrict energies,  // (3) Lennard-Jones, Coulomb, GB [kcal/mol]
    global real *restrict gradient)  // (n_atoms, 3), initially zero [kcal/mol/step]
{
    sum_t lennard_jones = 0, coulomb = 0, gb = 0;
    for (int p = 0; p < n_pairs; ++p) {
        const Pair pair = PAIR(p);
        lennard_jones += pair.lennard_jones;
        coulomb += pair.coulomb;
        gb += pair.gb;
#if GRADIENT
        const int i = 3 * pairs[p].x, j = 3 * ATOM(pairs[p].y);
        gradient[i] += pair.gx;
        gradient[i + 1] += pair.gy;
        gradient[i + 2] += pair.gz;
        gradient[j] -= pair.gx;
        gradient[j + 1] -= pair.gy;
        gradient[j + 2] -= pair.gz;
#endif
    }
    energies[0] = (real)lennard_jones;
    energies[1] = (real)coulomb;
    energies[2] = (real)gb;
}
