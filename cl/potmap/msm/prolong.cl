// Prolongation of multilevel summation, the transpose of the restriction, one axis at a time: potentials of a lattice
// to one with twice as many points along that axis. One work-item per fine point: it copies the potential of a
// coincident coarse point, or interpolates from the NODES coarse points around it. docs/theory/msm.md, eq. 7
#include "common/real.clh"

#ifndef NODES
#error "NODES: points that the interpolant reaches along an axis"
#endif

kernel void msm_prolong(
    const ulong n_all,                    // n_outer * n_fine * n_inner
    const int n_fine,
    const int n_coarse,
    const int n_inner,
    const int first,                      // the fine point that coincides with the first coarse one
    const int adds,                       // 1 to add to existing potentials, else 0
    global const real *restrict shares,   // (NODES) weights of a fine point between two coarse ones
    global const real *restrict coarse,   // (n_outer, n_coarse, n_inner) potentials
    global real *restrict fine)           // (n_outer, n_fine, n_inner)
{
    const size_t own = get_global_id(0), line = own / n_inner;
    if (own >= n_all) return;
    const int away = (int)(line % n_fine) - first;
    global const real *of_line = coarse + line / n_fine * n_coarse * n_inner + own % n_inner;
    real sum = 0;
    if (away & 1) {
        of_line += (size_t)((away - (NODES - 1)) / 2) * n_inner;
        for (int k = 0; k < NODES; ++k) sum += shares[k] * of_line[(size_t)k * n_inner];
    } else
        sum = of_line[(size_t)(away / 2) * n_inner];
    fine[own] = adds ? fine[own] + sum : sum;
}
