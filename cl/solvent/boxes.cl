// The tree over sorted atoms, from below: of each box of 8, 16, 32, ... slots the middle, the reach and the moments of
// the HCT series; eqs. of docs/theory/tree.md. Box k of level l holds the slots 8 * 2^l * k and on, so nothing points.
//
// A box is the work of LANES work-items, which add up in an order that does not change: the same bits every run.
// Conformations are the third dimension.
#include "common/real.clh"
#include "physics/hct.clh"
#include "solvent/tree.clh"

#ifndef LANES
#error "LANES: work-items that share a box, the size of a work-group"
#endif

// The sums of a box about its middle, in their order: M1 to M4, D2, D3, Q1, Q2, trace of Q3, O, H. The middle is where the
// weights' first moment vanishes. Weights below 0 (of radii below 0, GBn2) may leave none: such a box is never far.
enum { M = 0, D2 = 4, D3 = 7, Q1 = 10, Q2 = 16, TRACE3 = 22, O = 23, H = 33, SUMS = 39 };

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

kernel __attribute__((reqd_work_group_size(LANES, 1, 1)))
void box_moments(
    const int n_tiles,
    const int first_level,                 // of this launch
    const int first_box,                   // number of its first box among those of all levels
    const int n_boxes,                     // of all levels
    global const int *restrict levels,     // (n_levels + 1) number of each level's first box
    const Reaches reaches,
    global const real4 *restrict atoms,    // (n_conformations, n_slots) x, y, z from the tile's origin [A], scaled radius [A]
    global const real4 *restrict series,   // (n_conformations, n_slots, 2) coefficients of the series behind the first number
    global const real4 *restrict origins,  // (n_conformations, n_tiles) origin [A]
    global const int *restrict counts,     // (n_tiles) atoms in the tile
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
    real weight = 0, size = 0, x = 0, y = 0, z = 0, s = 0;
#define EACH_ATOM \
    for (int i = begin + lane; i < end; i += LANES) { \
        if (i % TILE >= counts[i / TILE]) continue; \
        const real4 atom = atoms[at + i], shift = origins[tiles + i / TILE] - start, b = series[2 * (at + i)]; \
        real dx = atom.x + shift.x, dy = atom.y + shift.y, dz = atom.z + shift.z;
    EACH_ATOM
        weight += b.y;
        size += fabs(b.y);
        x += b.y * dx;
        y += b.y * dy;
        z += b.y * dz;
        s = fmax(s, fabs(atom.w));
    }
    weight = over_lanes(weight, scratch);
    size = over_lanes(size, scratch);
    const bool has_middle = fabs(weight) > (real)0.1 * size || size == 0;
    const real share = has_middle && size > 0 ? (real)1 / weight : (real)0;
    const real4 middle = {over_lanes(x, scratch) * share, over_lanes(y, scratch) * share, over_lanes(z, scratch) * share, 0};
    s = largest_over_lanes(s, scratch);
    real sums[SUMS], reach2 = 0, left_out = 0;
    for (int k = 0; k < SUMS; ++k) sums[k] = 0;
    EACH_ATOM
        dx -= middle.x;
        dy -= middle.y;
        dz -= middle.z;
        const real4 c = series[2 * (at + i) + 1];
        const real xx = dx * dx, yy = dy * dy, zz = dz * dz, xy = dx * dy, xz = dx * dz, yz = dy * dz;
        const real d2 = xx + yy + zz, a = b.y, a2 = b.z, a3 = b.w, h = a * d2;
        reach2 = fmax(reach2, d2);
        left_out += fabs(a) * d2 * d2;
        sums[M] += a;
        sums[M + 1] += a2;
        sums[M + 2] += a3;
        sums[M + 3] += c.x;
        sums[D2] += a2 * dx;
        sums[D2 + 1] += a2 * dy;
        sums[D2 + 2] += a2 * dz;
        sums[D3] += a3 * dx;
        sums[D3 + 1] += a3 * dy;
        sums[D3 + 2] += a3 * dz;
        sums[Q1] += a * xx;
        sums[Q1 + 1] += a * yy;
        sums[Q1 + 2] += a * zz;
        sums[Q1 + 3] += a * xy;
        sums[Q1 + 4] += a * xz;
        sums[Q1 + 5] += a * yz;
        sums[Q2] += a2 * xx;
        sums[Q2 + 1] += a2 * yy;
        sums[Q2 + 2] += a2 * zz;
        sums[Q2 + 3] += a2 * xy;
        sums[Q2 + 4] += a2 * xz;
        sums[Q2 + 5] += a2 * yz;
        sums[TRACE3] += a3 * d2;
        sums[O] += a * xx * dx;
        sums[O + 1] += a * yy * dy;
        sums[O + 2] += a * zz * dz;
        sums[O + 3] += a * xx * dy;
        sums[O + 4] += a * xx * dz;
        sums[O + 5] += a * yy * dx;
        sums[O + 6] += a * yy * dz;
        sums[O + 7] += a * zz * dx;
        sums[O + 8] += a * zz * dy;
        sums[O + 9] += a * xy * dz;
        sums[H] += h * xx;
        sums[H + 1] += h * yy;
        sums[H + 2] += h * zz;
        sums[H + 3] += h * xy;
        sums[H + 4] += h * xz;
        sums[H + 5] += h * yz;
    }
    for (int k = 0; k < SUMS; ++k) sums[k] = over_lanes(sums[k], scratch);
    left_out = over_lanes(left_out, scratch);
    const real reach = sqrt(largest_over_lanes(reach2, scratch));
    if (lane) return;
    const size_t own = (size_t)conformation * n_boxes + box;
    const real h = sums[H] + sums[H + 1] + sums[H + 2];
    const real apart = fmax(fmax((real)FAR_A * s, reaches.largest_rho + s), sqrt(necks_end2(&reaches)));
    const real least_far = fmax(reach / OPENING, reach + apart);
    middles[MIDDLES * own] = (real4)(start.x, start.y, start.z, has_middle ? least_far * least_far : MAXFLOAT);
    middles[MIDDLES * own + 1] = (real4)(middle.x, middle.y, middle.z, left_out);
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
