// Builds the tree over sorted atoms, bottom-up; equations in docs/theory/tree.md. A box of 8 slots, doubled at each
// level, has a centre, a reach and moments of the HCT series. Box k of level l contains the slots from 8 * 2^l * k on,
// so no pointers are needed.
//
// LANES work-items process a box, in vectors of WIDTH slots, at most as many as a box of level 0. They sum in a fixed
// order: results are bitwise reproducible. Third dimension: conformations.
#include "common/real.clh"
#include "physics/hct.clh"
#include "solvent/tree.clh"

#ifndef LANES
#error "LANES: work-items that share a box, the size of a work-group"
#endif

// Sums of a box about its centre, eqs. 3 and 4. M1 to M4; of a1 the moments of second, third and fourth degree, each by
// its monomial of d; of a2 the moments of first and second degree; E, N; the bound of eq. 6. The centre is where the
// first moment of the weights vanishes. Negative weights (of negative radii, GBn2) may leave no such point: such a box
// is never far.
enum {
    M1, M2, M3, M4,
    XX, YY, ZZ, XY, XZ, YZ,
    XXX, YYY, ZZZ, XXY, XXZ, XYY, YYZ, XZZ, YZZ, XYZ,
    XXXX, YYYY, ZZZZ, XXXY, XXXZ, XYYY, YYYZ, XZZZ, YZZZ, XXYY, XXZZ, YYZZ, XXYZ, XYYZ, XYZZ,
    X_2, Y_2, Z_2,
    XX_2, YY_2, ZZ_2, XY_2, XZ_2, YZ_2,
    E_X, E_Y, E_Z, N, LEFT_OUT, SUMS
};

// Sum over all lanes, returned to each of them.
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

// On CPUs one work-item processes all atoms of a large box: partial sums preserve float32 accuracy. On GPUs they are
// divided among work-items.
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

// Coefficients of eq. 5 from the sums.
INLINE void store_moments(const real *t, global real4 *m) {
    const real hxx = t[XXXX] + t[XXYY] + t[XXZZ], hyy = t[XXYY] + t[YYYY] + t[YYZZ], hzz = t[XXZZ] + t[YYZZ] + t[ZZZZ];
    const real hxy = t[XXXY] + t[XYYY] + t[XYZZ], hxz = t[XXXZ] + t[XYYZ] + t[XZZZ], hyz = t[XXYZ] + t[YYYZ] + t[YZZZ];
    const real trace = t[XX] + t[YY] + t[ZZ], trace_2 = t[XX_2] + t[YY_2] + t[ZZ_2];
    const real ox = t[XXX] + t[XYY] + t[XZZ], oy = t[XXY] + t[YYY] + t[YZZ], oz = t[XXZ] + t[YYZ] + t[ZZZ];
    m[0] = (real4)(t[M1], t[M2] + 12 * t[ZZ] - 2 * trace,
                   t[M3] + 24 * t[ZZ_2] - 3 * trace_2 + 80 * t[ZZZZ] - 48 * hzz + 3 * (hxx + hyy + hzz),
                   t[M4] + t[N]);
    m[1] = (real4)(6 * t[X_2] + 96 * t[XZZ] - 12 * ox, 6 * t[Y_2] + 96 * t[YZZ] - 12 * oy,
                   6 * t[Z_2] + 32 * t[ZZZ] - 12 * oz, t[E_X]);
    m[2] = (real4)(t[E_Y], t[E_Z], 12 * (t[XX] - t[ZZ]), 24 * t[XY]);
    m[3] = (real4)(12 * (t[YY] - t[ZZ]), 24 * t[XZ], 24 * t[YZ],
                   24 * (t[XX_2] - t[ZZ_2]) - 48 * (hxx - hzz) + 480 * t[XXZZ] - 160 * t[ZZZZ]);
    m[4] = (real4)(48 * t[XY_2] - 96 * hxy + 960 * t[XYZZ],
                   24 * (t[YY_2] - t[ZZ_2]) - 48 * (hyy - hzz) + 480 * t[YYZZ] - 160 * t[ZZZZ],
                   48 * t[XZ_2] - 96 * hxz + 320 * t[XZZZ], 48 * t[YZ_2] - 96 * hyz + 320 * t[YZZZ]);
    m[5] = (real4)(32 * t[XXX] - 96 * t[XZZ], 96 * (t[XXY] - t[YZZ]), 96 * (t[XYY] - t[XZZ]), 32 * t[YYY] - 96 * t[YZZ]);
    m[6] = (real4)(96 * t[XXZ] - 32 * t[ZZZ], 192 * t[XYZ], 96 * t[YYZ] - 32 * t[ZZZ], 320 * (t[YYYZ] - t[YZZZ]));
    m[7] = (real4)(80 * (t[XXXX] + t[ZZZZ]) - 480 * t[XXZZ], 320 * t[XXXY] - 960 * t[XYZZ],
                   480 * (t[XXYY] - t[YYZZ] - t[XXZZ]) + 160 * t[ZZZZ], 320 * t[XYYY] - 960 * t[XYZZ]);
    m[8] = (real4)(80 * (t[YYYY] + t[ZZZZ]) - 480 * t[YYZZ], 320 * (t[XXXZ] - t[XZZZ]), 960 * t[XXYZ] - 320 * t[YZZZ],
                   960 * t[XYYZ] - 320 * t[XZZZ]);
}

kernel __attribute__((reqd_work_group_size(LANES, 1, 1)))
void box_moments(
    const int n_tiles,
    const int first_level,                 // of this launch
    const int first_box,                   // index of its first box among those of all levels
    const int n_boxes,                     // on all levels
    global const int *restrict levels,     // (n_levels + 1) index of each level's first box
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
        const realv a4 = LOAD(3 * n_slots + i, columns);
        const realv xx = dx * dx, yy = dy * dy, zz = dz * dz, xy = dx * dy, xz = dx * dz, yz = dy * dz;
        const realv d2 = xx + yy + zz, d4 = d2 * d2, axx = a * xx, ayy = a * yy, azz = a * zz, axy = a * xy;
        // Unused slots contain an atom of another box.
        reach2 = fmax(reach2, CHOOSE((real)0, d2, a != (realv)0));
        run[LEFT_OUT] += fabs(a) * d4 * sqrt(d2);
        run[M1] += a;
        run[M2] += a2;
        run[M3] += a3;
        run[M4] += a4;
        run[XX] += axx;
        run[YY] += ayy;
        run[ZZ] += azz;
        run[XY] += axy;
        run[XZ] += a * xz;
        run[YZ] += a * yz;
        run[XXX] += axx * dx;
        run[YYY] += ayy * dy;
        run[ZZZ] += azz * dz;
        run[XXY] += axx * dy;
        run[XXZ] += axx * dz;
        run[XYY] += ayy * dx;
        run[YYZ] += ayy * dz;
        run[XZZ] += azz * dx;
        run[YZZ] += azz * dy;
        run[XYZ] += axy * dz;
        run[XXXX] += axx * xx;
        run[YYYY] += ayy * yy;
        run[ZZZZ] += azz * zz;
        run[XXXY] += axx * xy;
        run[XXXZ] += axx * xz;
        run[XYYY] += ayy * xy;
        run[YYYZ] += ayy * yz;
        run[XZZZ] += azz * xz;
        run[YZZZ] += azz * yz;
        run[XXYY] += axx * yy;
        run[XXZZ] += axx * zz;
        run[YYZZ] += ayy * zz;
        run[XXYZ] += axx * yz;
        run[XYYZ] += ayy * xz;
        run[XYZZ] += azz * xy;
        const realv e = (real)8 * a3 + d2 * ((real)24 * a2 + (real)72 / 7 * a * d2);
        run[X_2] += a2 * dx;
        run[Y_2] += a2 * dy;
        run[Z_2] += a2 * dz;
        run[E_X] += e * dx;
        run[E_Y] += e * dy;
        run[E_Z] += e * dz;
        run[XX_2] += a2 * xx;
        run[YY_2] += a2 * yy;
        run[ZZ_2] += a2 * zz;
        run[XY_2] += a2 * xy;
        run[XZ_2] += a2 * xz;
        run[YZ_2] += a2 * yz;
        run[N] += d2 * ((real)28 / 3 * a3 + d2 * ((real)14 * a2 + (real)4 * a * d2));
        END_RUN(totals, run, SUMS, i - begin)
    }
    end_run(totals, run, SUMS);
    real sums[SUMS];
    for (int k = 0; k < SUMS; ++k) sums[k] = over_lanes(lane_sum(totals[k]), scratch);
    const real reach = sqrt(largest_over_lanes(lane_max(reach2), scratch));
    if (lane) return;
    const size_t own = (size_t)conformation * n_boxes + box;
    const real apart = fmax(fmax((real)FAR_A * s, reaches.largest_rho + s), sqrt(necks_end2(&reaches)));
    const real least_far = fmax(reach / OPENING, reach + apart);
    middles[MIDDLES * own] = (real4)(start.x, start.y, start.z, has_middle ? least_far * least_far : MAXFLOAT);
    middles[MIDDLES * own + 1] = (real4)(middle.x, middle.y, middle.z, sums[LEFT_OUT]);
#if RGB_MAX
    middles[MIDDLES * own + 2] = (real4)(reach, s, 0, 0);
#endif
    store_moments(sums, moments + MOMENTS * own);
}
