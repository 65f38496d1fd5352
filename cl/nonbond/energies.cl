// Reduces the energies of work-groups to a few parts, always in the same order. Each part is two numbers, the sum and
// its rounding error: together they are as accurate as a float64 sum.
#include "common/real.clh"

#ifndef PARTS
#error "PARTS: into which the groups are shared out, one a work-item"
#endif

// Adds to a sum, and the exact rounding error to `lost` (Knuth, TAOCP 2, 4.2.2, theorem B).
INLINE void add_exactly(real *sum, real *lost, real value) {
    const real total = *sum + value, added = total - *sum;
    *lost += (*sum - (total - added)) + (value - added);
    *sum = total;
}

kernel void add_energies(
    const int n_groups,
    const int first,                       // index of the parts in the results
    const int size,                        // size of a conformation's results
    global const real *restrict energies,  // (n_conformations, n_groups, 3) Lennard-Jones, Coulomb, GB [kcal/mol]
    global real *restrict results)         // (n_conformations, size) of which (PARTS, 2, 3)
{
    const int part = get_global_id(0), conformation = get_global_id(2);
    if (part >= PARTS) return;
    energies += (size_t)conformation * n_groups * 3;
    results += (size_t)conformation * size + first + 6 * part;
    real sums[3] = {0, 0, 0}, lost[3] = {0, 0, 0};
    for (int group = part; group < n_groups; group += PARTS)
        for (int k = 0; k < 3; ++k) add_exactly(&sums[k], &lost[k], energies[3 * group + k]);
    for (int k = 0; k < 3; ++k) {
        results[k] = sums[k];
        results[3 + k] = lost[k];
    }
}
