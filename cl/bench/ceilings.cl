// Peak-rate kernels, one for each kind of operation, with independent dependency chains. Each work-item has WIDTH lanes
// per chain. Results are stored so that the compiler cannot remove the work.
#include "common/real.clh"

#define CHAINS 8
#define EACH_CHAIN _Pragma("unroll") for (int c = 0; c < CHAINS; ++c)

// Each work-item writes the sum of its chains.
INLINE void keep(const realv *x, global real *kept) {
    realv sum = 0;
    EACH_CHAIN sum += x[c];
    STORE(sum, WIDTH * get_global_id(0), kept);
}

// Each work-item computes n_steps reciprocal square roots per chain.
kernel void reciprocal_roots(const int n_steps, const real start, global real *restrict kept)
{
    realv x[CHAINS];
    EACH_CHAIN x[c] = start + (real)c + (real)get_global_id(0);
    for (int n = 0; n < n_steps; ++n) EACH_CHAIN x[c] = inverse_sqrt(x[c]);
    keep(x, kept);
}

// Each work-item computes n_steps multiply-adds per chain.
kernel void multiply_adds(const int n_steps, const real start, global real *restrict kept)
{
    realv x[CHAINS];
    EACH_CHAIN x[c] = start + (real)c + (real)get_global_id(0);
    for (int n = 0; n < n_steps; ++n) EACH_CHAIN x[c] = x[c] * start + start;
    keep(x, kept);
}

// Each work-item copies WIDTH numbers.
kernel void copied(global const real *restrict from, global real *restrict to)
{
    STORE(LOAD(WIDTH * get_global_id(0), from), WIDTH * get_global_id(0), to);
}
