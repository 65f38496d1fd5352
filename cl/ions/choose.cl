// One work-group chooses the best point of all blocks (cl/ions/refresh.cl) for the next ion. From the same points it
// computes an upper bound for the energy of the ion after it.
#include "common/real.clh"
#include "ions/points.clh"

#ifndef GROUP
#error "GROUP: work-items of the one group, a power of two"
#endif

// Whether point a precedes point b: by energy, or for equal energies by its index in the map.
INLINE int before(real4 a, real4 b) {
    if (a.w != b.w) return a.w < b.w;
    if (a.z != b.z) return a.z < b.z;
    return a.y != b.y ? a.y < b.y : a.x < b.x;
}

kernel void choose(
    const int n_blocks,
    const int n_ions,
    const real4 spacing,                   // [A]
    const real reach2,                     // squared distance between ions [A^2]
    global const real *restrict charges,   // (n_ions) [kcal A/mol/e]
    global const real4 *restrict best,     // (2, n_blocks) x, y, z [steps], energy of a unit charge [kcal/mol]
    global int *restrict state,            // number of ions placed; 1 if no point was left for the next
    global real *restrict threshold,       // for the next call of refresh [kcal/mol]
    global real4 *restrict ions)           // (n_ions) x, y, z [steps], potential before the ion [kcal/mol/e]
{
    local real4 firsts[GROUP];
    local real lowest[GROUP];
    const int item = get_local_id(0);
    const int placed = state[0], full = state[1];
    if (full) return;

    const int side = charges[placed] < 0;
    real4 first = (real4)(0, 0, 0, INFINITY);
    for (int b = item; b < n_blocks; b += GROUP) {
        const real4 point = best[side * n_blocks + b];
        if (before(point, first)) first = point;
    }
    firsts[item] = first;
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    for (int half_size = GROUP / 2; half_size > 0; half_size /= 2) {
        if (item < half_size && before(firsts[item + half_size], firsts[item])) firsts[item] = firsts[item + half_size];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    const real4 ion = firsts[0];

    const int next_side = charges[min(placed + 1, n_ions - 1)] < 0;
    const real q = next_side ? -charges[placed] : charges[placed];
    const real most = q < 0 ? q * rsqrt(reach2) : 0;  // largest decrease of an energy by this ion
    real least = INFINITY;
    for (int b = item; b < n_blocks; b += GROUP) {
        const real4 point = best[next_side * n_blocks + b];
        if (point.w + most >= least) continue;
        const real r2 = distance2(point, ion, spacing), term = q * rsqrt(r2);
        if (r2 > reach2) least = fmin(least, point.w + term + SLACK * (fabs(point.w) + fabs(term)));
    }
    lowest[item] = least;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int half_size = GROUP / 2; half_size > 0; half_size /= 2) {
        if (item < half_size) lowest[item] = fmin(lowest[item], lowest[item + half_size]);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (item) return;
    if (ion.w < INFINITY) {
        ions[placed] = (real4)(ion.x, ion.y, ion.z, side ? -ion.w : ion.w);
        state[0] = placed + 1;
        *threshold = lowest[0];
    } else {
        state[1] = 1;
    }
}
