// Corrects points near atoms for the rounding of float32 coordinates: a point within the law's cutoff of an atom gets
// the potential at the true distance, minus that at the distance of the rounded coordinates. One work-item per point of
// a cube of EDGE^3 points loops over the atoms that reach the cube, in order.
#include "common/real.clh"
#include "potmap/law.clh"

#ifndef EDGE
#error "EDGE: points along an edge of a cube"
#endif

#define COMPONENTS (1 + 3 * FIELD)

// Adds the potential of a charge, and its field if FIELD, at a point `away` from it.
INLINE void add_potential(real4 away, real r2, real charge, const Law *law, real *sum) {
#if FIELD
    real slope;
    sum[0] += charge * unit_potential_and_slope(r2, law, &slope);
    slope *= charge;
    sum[1] += slope * away.x;
    sum[2] += slope * away.y;
    sum[3] += slope * away.z;
#else
    sum[0] += charge * unit_potential(r2, law);
#endif
}

INLINE real square(real4 away) { return away.x * away.x + away.y * away.y + away.z * away.z; }

kernel void correct(
    MAP_PARAMETERS,
    global const real *restrict rest_x,   // (nx) rounding errors of the coordinates of the points [A]
    global const real *restrict rest_y,
    global const real *restrict rest_z,
    global const int4 *restrict cubes,    // (n; 1) first point along x, y, z, and index of the cube's first atom
    global const real4 *restrict atoms,   // x, y, z [A], charge, cube by cube
    global const real4 *restrict rests)   // rounding errors of x, y, z
{
    const int own = get_global_id(0), cube = get_global_id(1);
    const int i = cubes[cube].x + own % EDGE, j = cubes[cube].y + own / EDGE % EDGE, k = cubes[cube].z + own / (EDGE * EDGE);
    if (i >= nx || j >= ny || k >= nz) return;
    const real4 point = (real4)(x[i], y[j], z[k], 0), rest = (real4)(rest_x[i], rest_y[j], rest_z[k], 0);
    const int end = cubes[cube + 1].w;
    real sum[COMPONENTS];
    for (int part = 0; part < COMPONENTS; ++part) sum[part] = 0;
    for (int a = cubes[cube].w; a < end; ++a) {
        const real4 seen = point - atoms[a], lost = rest - rests[a], exact = seen + lost;
        const real r2 = square(exact), charge = atoms[a].w;
        if (r2 >= law.cutoff2) continue;
        add_potential(exact, r2, charge, &law, sum);
        add_potential(seen, square(seen), -charge, &law, sum);
    }
    for (int part = 0; part < COMPONENTS; ++part) map[((part * nz + k) * ny + j) * nx + i] += sum[part];
}
