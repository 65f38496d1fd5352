// Restriction of multilevel summation, one axis at a time: charges of a lattice to one with half as many points along
// that axis. One work-item per coarse point gathers from the fine points around it. docs/theory/msm.md, eq. 5
#include "common/real.clh"

#ifndef NODES
#error "NODES: points that the interpolant reaches along an axis"
#endif

// The interpolation function is 1 at its own point and 0 at all others, so on the finer lattice it has NODES odd terms
// plus one.
#define TERMS (NODES + 1)
#define OFFSET(term) ((term) < NODES ? 2 * (term) - (NODES - 1) : 0)

kernel void msm_restrict(
    const ulong n_all,                    // n_outer * n_coarse * n_inner
    const int n_coarse,
    const int n_fine,
    const int n_inner,
    const int first,                      // the fine point that coincides with the first coarse one
    global const real *restrict shares,   // (TERMS)
    global const real *restrict fine,     // (n_outer, n_fine, n_inner) charges
    global real *restrict coarse)         // (n_outer, n_coarse, n_inner)
{
    const size_t own = get_global_id(0), line = own / n_inner;
    if (own >= n_all) return;
    const int point = 2 * (int)(line % n_coarse) + first;
    global const real *of_line = fine + line / n_coarse * n_fine * n_inner + own % n_inner;
    real sum = 0;
    for (int term = 0; term < TERMS; ++term) {
        const int k = point + OFFSET(term);
        if (k >= 0 && k < n_fine) sum += shares[term] * of_line[(size_t)k * n_inner];
    }
    coarse[own] = sum;
}
