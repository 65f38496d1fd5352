// The tree over sorted atoms, from below: of each box of 8, 16, 32, ... slots the middle, the reach and the moments of
// the HCT series; eqs. of docs/theory/tree.md. Box k of level l holds the slots 8 * 2^l * k and on, so nothing points.
//
// A box is the work of LANES work-items, each of which takes vectors of WIDTH slots, no more than a box of level 0 has. They
// add up in an order that does not change: the same bits every run. Conformations are the third dimension.
#include "common/real.clh"
#include "physics/hct.clh"
#include "solvent/tree.clh"

#ifndef LANES
#error "LANES: work-items that share a box, the size of a work-group"
#endif

// The sums of a box about its middle, in their order: M1 to M4, D2, D3, Q1, Q2, trace of Q3, O, H, what eq. 6 bounds. The
// middle is where the weights' first moment vanishes. Weights below 0 (of radii below 0, GBn2) may leave none: such a box
// is never far.
enum { M = 0, D2 = 4, D3 = 7, Q1 = 10, Q2 = 16, TRACE3 = 22, O = 23, H = 33, LEFT_OUT = 39, SUMS = 40 };

// The total of all lanes, in each of them.
INLINE real over_lanes(real own, local real *scratch) {
#if LANES > 1
    barrier(CLK_LOCAL_MEM_FENCE);
    scratch[get_local_id(0)] = own;
    for (int half_size = LANES / 2; half_size > 0; half_size /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (get_local_id(0) < half_size) scratch[get_local_id(0)] += scratch[get_local_id(0) + half_size];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    return scratch[0];
#else
    return own;
#endif
}
INLINE real largest_over_lanes(real own, local real *scratch) {
#if LANES > 1
    barrier(CLK_LOCAL_MEM_FENCE);
    scratch[get_local_id(0)] = own;
    for (int half_size = LANES / 2; half_size > 0; half_size /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (get_local_id(0) < half_size)
            scratch[get_local_id(0)] = fmax(scratch[get_local_id(0)], scratch[get_local_id(0) + half_size]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    return scratch[0];
#else
    return own;
#endif
}

INLINE real lane_max(realv x) {
    real lanes[WIDTH], largest = 0;
    STORE(x, 0, lanes);
    for (int k = 0; k < WIDTH; ++k) largest = fmax(largest, lanes[k]);
    return largest;
}

// On CPUs a work-item meets all atoms of a large box one after the other: short runs keep float32's digits. On GPUs it shares
// them with others.
#define RUN 64  // vectors
INLINE void end_run(realv *totals, realv *run, int n) {
    for (int k = 0; k < n; ++k) {
        totals[k] += run[k];
        run[k] = 0;
    }
}
#if WIDTH > 1
#define END_RUN(totals, run, n, i) if ((i) / WIDTH % RUN == RUN - 1) end_run(totals, run, n);
#else
#define END_RUN(totals, run, n, i)
#endif

kernel __attribute__((reqd_work_group_size(LANES, 1, 1)))
void box_moments(
    const int n_tiles,
    const int first_level,                 // of this launch
    const int first_box,                   // number of its first box among those of all levels
    const int n_boxes,                     // of all levels
    global const int *restrict levels,     // (n_levels + 1) number of each level's first box
    const Reaches reaches,
    global const real *restrict x_of,      // (n_conformations, n_slots) position from the tile's origin [A]
    global const real *restrict y_of,
    global const real *restrict z_of,
    global const real *restrict s_of,      // (n_slots) scaled radius, 0 at unused slots [A]
    global const real *restrict columns,   // (7, n_slots) coefficients of the series, 0 at unused slots
    global const real4 *restrict origins,  // (n_conformations, n_tiles) origin [A]
    global real4 *restrict middles,        // (n_conformations, n_boxes, MIDDLES)
    global real4 *restrict moments)        // (n_conformations, n_boxes, MOMENTS)
{
    local real scratch[LANES];
    const int box = first_box + get_group_id(0), conformation = get_global_id(2), lane = get_local_id(0);
    int level = first_level;
    while (box >= levels[level + 1]) ++level;
    const int n_slots = n_tiles * TILE, begin = (box - levels[level]) * (LEAF << level);
    const int end = min(begin + (LEAF << level), n_slots);
    const size_t at = (size_t)conformation * n_slots, tiles = (size_t)conformation * n_tiles;
    const real4 start = origins[tiles + begin / TILE];
#define EACH_VECTOR \
    for (int i = begin + lane * WIDTH; i < end; i += LANES * WIDTH) { \
        const real4 shift = origins[tiles + i / TILE] - start; \
        const realv a = LOAD(i, columns); \
        realv dx = LOAD(at + i, x_of) + shift.x, dy = LOAD(at + i, y_of) + shift.y, dz = LOAD(at + i, z_of) + shift.z;
    enum { WEIGHT, SIZE, X, Y, Z, FIRST_SUMS };
    realv first_totals[FIRST_SUMS], first_run[FIRST_SUMS], largest_s = 0;
    for (int k = 0; k < FIRST_SUMS; ++k) first_totals[k] = first_run[k] = 0;
    EACH_VECTOR
        first_run[WEIGHT] += a;
        first_run[SIZE] += fabs(a);
        first_run[X] += a * dx;
        first_run[Y] += a * dy;
        first_run[Z] += a * dz;
        largest_s = fmax(largest_s, fabs(LOAD(i, s_of)));
        END_RUN(first_totals, first_run, FIRST_SUMS, i - begin)
    }
    end_run(first_totals, first_run, FIRST_SUMS);
    real first[FIRST_SUMS];
    for (int k = 0; k < FIRST_SUMS; ++k) first[k] = over_lanes(lane_sum(first_totals[k]), scratch);
    const bool has_middle = fabs(first[WEIGHT]) > (real)0.1 * first[SIZE] || first[SIZE] == 0;
    const real share = has_middle && first[SIZE] > 0 ? (real)1 / first[WEIGHT] : (real)0;
    const real4 middle = {first[X] * share, first[Y] * share, first[Z] * share, 0};
    const real s = largest_over_lanes(lane_max(largest_s), scratch);
    realv totals[SUMS], run[SUMS], reach2 = 0;
    for (int k = 0; k < SUMS; ++k) totals[k] = run[k] = 0;
    EACH_VECTOR
        dx -= middle.x;
        dy -= middle.y;
        dz -= middle.z;
        const realv a2 = LOAD(n_slots + i, columns), a3 = LOAD(2 * n_slots + i, columns);
        const realv xx = dx * dx, yy = dy * dy, zz = dz * dz, xy = dx * dy, xz = dx * dz, yz = dy * dz;
        const realv d2 = xx + yy + zz, h = a * d2;
        // Unused slots hold an atom of another box.
        reach2 = fmax(reach2, CHOOSE((real)0, d2, a != (realv)0));
        run[LEFT_OUT] += fabs(a) * d2 * d2;
        run[M] += a;
        run[M + 1] += a2;
        run[M + 2] += a3;
        run[M + 3] += LOAD(3 * n_slots + i, columns);
        run[D2] += a2 * dx;
        run[D2 + 1] += a2 * dy;
        run[D2 + 2] += a2 * dz;
        run[D3] += a3 * dx;
        run[D3 + 1] += a3 * dy;
        run[D3 + 2] += a3 * dz;
        run[Q1] += a * xx;
        run[Q1 + 1] += a * yy;
        run[Q1 + 2] += a * zz;
        run[Q1 + 3] += a * xy;
        run[Q1 + 4] += a * xz;
        run[Q1 + 5] += a * yz;
        run[Q2] += a2 * xx;
        run[Q2 + 1] += a2 * yy;
        run[Q2 + 2] += a2 * zz;
        run[Q2 + 3] += a2 * xy;
        run[Q2 + 4] += a2 * xz;
        run[Q2 + 5] += a2 * yz;
        run[TRACE3] += a3 * d2;
        run[O] += a * xx * dx;
        run[O + 1] += a * yy * dy;
        run[O + 2] += a * zz * dz;
        run[O + 3] += a * xx * dy;
        run[O + 4] += a * xx * dz;
        run[O + 5] += a * yy * dx;
        run[O + 6] += a * yy * dz;
        run[O + 7] += a * zz * dx;
        run[O + 8] += a * zz * dy;
        run[O + 9] += a * xy * dz;
        run[H] += h * xx;
        run[H + 1] += h * yy;
        run[H + 2] += h * zz;
        run[H + 3] += h * xy;
        run[H + 4] += h * xz;
        run[H + 5] += h * yz;
        END_RUN(totals, run, SUMS, i - begin)
    }
    end_run(totals, run, SUMS);
    real sums[SUMS];
    for (int k = 0; k < SUMS; ++k) sums[k] = over_lanes(lane_sum(totals[k]), scratch);
    const real reach = sqrt(largest_over_lanes(lane_max(reach2), scratch));
    if (lane) return;
    const size_t own = (size_t)conformation * n_boxes + box;
    const real h = sums[H] + sums[H + 1] + sums[H + 2];
    const real apart = fmax(fmax((real)FAR_A * s, reaches.largest_rho + s), sqrt(necks_end2(&reaches)));
    const real least_far = fmax(reach / OPENING, reach + apart);
    middles[MIDDLES * own] = (real4)(start.x, start.y, start.z, has_middle ? least_far * least_far : MAXFLOAT);
    middles[MIDDLES * own + 1] = (real4)(middle.x, middle.y, middle.z, sums[LEFT_OUT]);
#if RGB_MAX
    middles[MIDDLES * own + 2] = (real4)(reach, s, 0, 0);
#endif
    const real trace1 = sums[Q1] + sums[Q1 + 1] + sums[Q1 + 2], trace2 = sums[Q2] + sums[Q2 + 1] + sums[Q2 + 2];
    const real tx = sums[O] + sums[O + 5] + sums[O + 7], ty = sums[O + 1] + sums[O + 3] + sums[O + 8];
    const real tz = sums[O + 2] + sums[O + 4] + sums[O + 6];
    const real by_h = (real)144 / 7, twice = 2 * by_h;
    global real4 *m = moments + MOMENTS * own;
    m[0] = (real4)(sums[M], sums[M + 1] - 2 * trace1, sums[M + 2] - (real)27 / 7 * h - 3 * trace2,
                   sums[M + 3] + (real)28 / 3 * sums[TRACE3]);
    m[1] = (real4)(6 * sums[D2] - 12 * tx, 6 * sums[D2 + 1] - 12 * ty, 6 * sums[D2 + 2] - 12 * tz, 8 * sums[D3]);
    m[2] = (real4)(8 * sums[D3 + 1], 8 * sums[D3 + 2], 12 * sums[Q1], 12 * sums[Q1 + 1]);
    m[3] = (real4)(12 * sums[Q1 + 2], 24 * sums[Q1 + 3], 24 * sums[Q1 + 4], 24 * sums[Q1 + 5]);
    m[4] = (real4)(by_h * sums[H] + 24 * sums[Q2], by_h * sums[H + 1] + 24 * sums[Q2 + 1],
                   by_h * sums[H + 2] + 24 * sums[Q2 + 2], twice * sums[H + 3] + 48 * sums[Q2 + 3]);
    m[5] = (real4)(twice * sums[H + 4] + 48 * sums[Q2 + 4], twice * sums[H + 5] + 48 * sums[Q2 + 5], 32 * sums[O],
                   32 * sums[O + 1]);
    m[6] = (real4)(32 * sums[O + 2], 96 * sums[O + 3], 96 * sums[O + 4], 96 * sums[O + 5]);
    m[7] = (real4)(96 * sums[O + 6], 96 * sums[O + 7], 96 * sums[O + 8], 192 * sums[O + 9]);
}
