// Reductions and vector updates of conjugate gradients. Each group processes a chunk of the arrays of a row, one of
// several problems. The order is fixed, so that sums are bitwise reproducible. Arrays are padded with zeros to whole
// chunks of LANES.
#include "common/real.clh"
#include "common/total.clh"

#ifndef GROUP
#error "GROUP: work-items of a group, a power of two"
#endif
#ifndef LANES
#error "LANES: numbers that a work-item adds up beside each other: those of a CPU's registers, 1 on GPUs"
#endif

#ifndef WIDE_SOLUTION
#error "WIDE_SOLUTION: 1 where the solution is a potential in wide numbers, 0 where it is a correction"
#endif
#if WIDE_SOLUTION
typedef total solved;
#else
typedef real solved;
#endif

enum { RZ, ALPHA, BETA, SQUARE, N_SCALARS };          // indices of a row's scalars
enum { FOR_START, FOR_ALPHA, FOR_SQUARE, FOR_BETA };  // what a sum is used for

#define FOR_CHUNK(t, chunk, n)                                                                     \
    const size_t row_ = get_global_id(1) * (size_t)(n), chunk_ = get_group_id(0) * (size_t)(chunk);     \
    const size_t end_ = row_ + min(chunk_ + (chunk), (size_t)(n));                                  \
    for (size_t t = row_ + chunk_ + get_local_id(0) * LANES; t < end_; t += GROUP * LANES)
#define OF_ROW(scalar) get_global_id(1) * N_SCALARS + (scalar)
#define FOR_LANES(l) for (int l = 0; l < LANES; ++l)

// Reduces the lanes of all work-items of the group, and writes the sum.
INLINE void conclude_group(const total *lanes, local total *scratch, global total *sums) {
    const int item = get_local_id(0);
    total sum = 0;
    FOR_LANES(l) sum += lanes[l];
    scratch[item] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int half_size = GROUP / 2; half_size > 0; half_size /= 2) {
        if (item < half_size) scratch[item] += scratch[item + half_size];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (item == 0) sums[get_global_id(1) * get_num_groups(0) + get_group_id(0)] = scratch[0];
}

kernel void multiply(
    const ulong n, const ulong chunk, global const real *restrict a, global const real *restrict b,
    global total *restrict sums)
{
    local total scratch[GROUP];
    total lanes[LANES] = {0};
    FOR_CHUNK(t, chunk, n) {
        FOR_LANES(l) lanes[l] += (total)a[t + l] * b[t + l];
    }
    conclude_group(lanes, scratch, sums);
}

// A step along the direction; sums the squares of the residual.
kernel void advance(
    const ulong n, const ulong chunk, global const total *restrict scalars, global const real *restrict direction,
    global const real *restrict product, global solved *restrict solution, global real *restrict residual,
    global total *restrict sums)
{
    local total scratch[GROUP];
    total lanes[LANES] = {0};
    const real alpha = (real)scalars[OF_ROW(ALPHA)];
    FOR_CHUNK(t, chunk, n) {
        FOR_LANES(l) {
            solution[t + l] += alpha * direction[t + l];
            const real left = residual[t + l] - alpha * product[t + l];
            residual[t + l] = left;
            lanes[l] += (total)left * left;
        }
    }
    conclude_group(lanes, scratch, sums);
}

// Computes the next direction.
kernel void turn(
    const ulong n, const ulong chunk, global const total *restrict scalars, global const real *restrict preconditioned,
    global real *restrict direction)
{
    const real beta = (real)scalars[OF_ROW(BETA)];
    FOR_CHUNK(t, chunk, n) {
        FOR_LANES(l) direction[t + l] = preconditioned[t + l] + beta * direction[t + l];
    }
}

// Adds the sums of the groups and computes the scalars that depend on them. One group per row; a row makes no further
// steps after it has converged. goals : squared residuals at which rows have converged
kernel void conclude(
    const int n_sums, const int what, global const total *restrict sums, global const total *restrict goals,
    global total *restrict scalars)
{
    local total scratch[GROUP];
    const int item = get_local_id(0);
    total sum = 0;
    for (int t = item; t < n_sums; t += GROUP) sum += sums[get_global_id(1) * n_sums + t];
    scratch[item] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int half_size = GROUP / 2; half_size > 0; half_size /= 2) {
        if (item < half_size) scratch[item] += scratch[item + half_size];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (item > 0) return;
    const total all = scratch[0];
    global total *own = scalars + OF_ROW(0);
    if (what == FOR_ALPHA) own[ALPHA] = all > 0 && own[SQUARE] > goals[get_global_id(1)] ? own[RZ] / all : 0;
    if (what == FOR_SQUARE) own[SQUARE] = all;
    if (what == FOR_BETA) {
        own[BETA] = own[RZ] > 0 ? all / own[RZ] : 0;
        own[RZ] = all;
    }
    if (what == FOR_START) {
        own[BETA] = 0;
        own[RZ] = all;
    }
}
