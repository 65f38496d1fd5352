// Energy of the ions in a reaction potential, for the nonlinear equation. Each group sums a chunk of the nodes. The
// order is fixed, so that sums are bitwise reproducible.
#include "common/real.clh"
#include "common/total.clh"

#ifndef GROUP
#error "GROUP: work-items of a group, a power of two"
#endif
#ifndef CODED
#error "CODED: 1 where access is a byte, 0 where it is a number"
#endif
#ifndef LARGEST_EXPONENT
#error "LARGEST_EXPONENT: of an ion's Boltzmann factor"
#endif
#define LEAST_ACCESS 1e-9f  // for smaller values exponentials may overflow

#if CODED
typedef uchar access;
#else
typedef total access;
#endif

// first : index of the problem's first node; ions : (n_ions, 2) charge and concentration. A sum is NaN if an exponent
// is too large.
kernel void sum_ions(
    const ulong first, const ulong n, const ulong chunk, const int n_ions, global const total *restrict ions,
    global const access *restrict accesses, global const total *restrict potential, global total *restrict sums)
{
    local total scratch[GROUP];
    const int item = get_local_id(0);
    const size_t begin = get_group_id(0) * (size_t)chunk, end = min(begin + (size_t)chunk, (size_t)n);
    total sum = 0;
    for (size_t t = begin + item; t < end; t += GROUP) {
        const total share = accesses[first + t], u = potential[first + t];
        if (share <= LEAST_ACCESS) continue;
        total energy = 0;
        for (int s = 0; s < n_ions; ++s) {
            const total x = -ions[2 * s] * u;
            energy += x > LARGEST_EXPONENT ? NAN : ions[2 * s + 1] * ((total)0.5 * x * exp(x) - expm1(x));
        }
        sum += share * energy;
    }
    scratch[item] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int half_size = GROUP / 2; half_size > 0; half_size /= 2) {
        if (item < half_size) scratch[item] += scratch[item + half_size];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (item == 0) sums[get_group_id(0)] = scratch[0];
}
