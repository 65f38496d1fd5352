// What Born radii add to the gradient, over squares of two tiles, each pair once for both of its atoms, for GPUs. Shared
// out as in energy_pair_squares.cl, to whose sums it adds.
#include "real.clh"
#include "born.clh"
#include "hct_tiles.clh"
#include "tiles.clh"
#include "squares.clh"
#include "energy_sums.clh"

#ifndef CLOSED
#error "CLOSED: scaled radii within which the closed form is taken"
#endif
#ifndef CLOSED_TERMS
#error "CLOSED_TERMS: terms of the series at that distance"
#endif

#include "energy_chain.clh"

// What is known of the tile that is met.
typedef struct {
    local const real4 *spheres, *series;  // x, y, z, s; coefficients, two to an atom
    local const real *weights, *rhos;
    local real4 *recoil;
} Met;

// terms, a constant: of the series, or 0 where pairs are near. own_series: the coefficients of own atoms.
INLINE void add_square(
    Own *own, const Met *met, int lane, global const real *own_series, int n_places, real largest_rho, real largest_s,
    const int terms) {
    real a[OWN_ATOMS][7];
    #pragma unroll
    for (int v = 0; v < OWN_ATOMS; ++v)
        #pragma unroll
        for (int k = 0; k < 7; ++k) a[v][k] = k < terms ? own_series[k * n_places + v * LANES + lane] : (real)0;
    for (int half_tile = 0; half_tile < TILE; half_tile += LANES) {
        for (int step = 0; step < LANES; ++step) {
            const int j = half_tile + (lane + step) % LANES;
            const real4 other = met->spheres[j];
            const real weight = met->weights[j];
            real4 b = 0, c = 0, back = met->recoil[j];
            if (terms > 0) b = met->series[2 * j];
            if (terms > 4) c = met->series[2 * j + 1];
            #pragma unroll
            for (int v = 0; v < OWN_ATOMS; ++v) {
                const real dx = own[v].x - other.x, dy = own[v].y - other.y, dz = own[v].z - other.z;
                const real r2 = dx * dx + dy * dy + dz * dz;
                real slope;
                if (terms > 0) {
                    const real inv_r2 = inverse(r2);
                    slope = FAR_SLOPE(inv_r2, terms, own[v].weight, b, c, weight, a[v][0], a[v][1], a[v][2], a[v][3],
                                      a[v][4], a[v][5], a[v][6]);
                } else {
                    const real s = fmax(largest_s, other.w), reach = fmax((real)CLOSED * s, largest_rho + s);
                    slope = near_slope(own + v, other, r2, met->rhos[j], weight, reach);
                }
                own[v].gx += slope * dx;
                own[v].gy += slope * dy;
                own[v].gz += slope * dz;
                back.x -= slope * dx;
                back.y -= slope * dy;
                back.z -= slope * dz;
            }
            met->recoil[j] = back;
            barrier(CLK_LOCAL_MEM_FENCE);
        }
    }
}

kernel __attribute__((reqd_work_group_size(LANES, 1, 1)))
void chain_squares(
    const int n_tiles,
    const int steps_per_chunk,
    const real largest_rho,                 // largest offset radius of all atoms [A]
    global const real4 *restrict spheres,   // (n_conformations, n_places) x, y, z from the tile's origin, s [A]
    global const real *restrict x,          // (n_conformations, n_places) the same as columns
    global const real *restrict y,
    global const real *restrict z,
    global const real *restrict weights,    // (n_conformations, n_places) dE/dI, 0 at unused places [kcal/mol A]
    global const real *restrict s,          // (n_places) scaled radius, 0 at unused places [A]
    global const real *restrict rho,        // (n_places) offset radius [A]
    global const real4 *restrict series,    // (n_places, 2) coefficients of r^-6, r^-8, ... r^-18
    global const real *restrict columns,    // (7, n_places) the same as columns
    global const real4 *restrict origins,   // (n_conformations, n_tiles) origin [A]; w = largest scaled radius [A]
    global const real4 *restrict extents,   // (n_conformations, n_tiles) half edges of the box around the origin [A]
    global const int *restrict counts,      // (n_tiles) atoms in the tile
    global real *restrict sums,             // (n_conformations, n_chunks, PAIR_SUMS, n_places): adds to the gradient
    global real *restrict recoil)           // (n_conformations, n_tiles / 2, 4, n_places): adds to the gradient
{
    local real4 met_spheres[TILE], met_series[2 * TILE], met_recoil[TILE];
    local real met_weights[TILE], met_rhos[TILE];
    const Met met = {met_spheres, met_series, met_weights, met_rhos, met_recoil};
    const int lane = get_local_id(0), row = get_global_id(0) / LANES;
    const int chunk = get_global_id(1), conformation = get_global_id(2);
    const int n_chunks = (n_tiles / 2 + steps_per_chunk) / steps_per_chunk, n_places = n_tiles * TILE;
    const size_t at = (size_t)conformation * n_places, box = (size_t)conformation * n_tiles;
    const real4 origin = origins[box + row], extent = extents[box + row];
    const int start = row * TILE;

    real gx[OWN_ATOMS], gy[OWN_ATOMS], gz[OWN_ATOMS];
    #pragma unroll
    for (int v = 0; v < OWN_ATOMS; ++v) gx[v] = gy[v] = gz[v] = 0;
    const int begin = chunk * steps_per_chunk, end = min(begin + steps_per_chunk, last_step_of(row, n_tiles) + 1);
    for (int step = begin; step < end; ++step) {
        const int tile = (row + step) % n_tiles;
        const real4 shift = origin - origins[box + tile];
        const real gap2 = box_gap2(shift, extent, extents[box + tile]);
        const real largest_s = fmax(origin.w, origins[box + tile].w), s_square = largest_s * largest_s;
        const bool far = gap2 > (real)(FAR_A * FAR_A) * s_square
                      && gap2 > (largest_rho + largest_s) * (largest_rho + largest_s);
        Own own[OWN_ATOMS];
        #pragma unroll
        for (int v = 0; v < OWN_ATOMS; ++v) {
            const int j = v * LANES + lane, i = start + j, k = tile * TILE + j;
            own[v].x = x[at + i] + shift.x;
            own[v].y = y[at + i] + shift.y;
            own[v].z = z[at + i] + shift.z;
            own[v].rho = rho[i];
            own[v].s = s[i];
            own[v].weight = weights[at + i];
            own[v].gx = own[v].gy = own[v].gz = 0;
            met_spheres[j] = spheres[at + k];
            met_spheres[j].w = s[k];
            met_series[2 * j] = series[2 * k];
            met_series[2 * j + 1] = series[2 * k + 1];
            met_weights[j] = weights[at + k];
            met_rhos[j] = rho[k];
            met_recoil[j] = 0;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
#define ADD_SQUARE(terms) add_square(own, &met, lane, columns + start, n_places, largest_rho, origin.w, terms)
        if (!far) ADD_SQUARE(0);
        else if (gap2 > (real)(FAR_C * FAR_C) * s_square) ADD_SQUARE(TERMS_C);
        else if (gap2 > (real)(FAR_B * FAR_B) * s_square) ADD_SQUARE(TERMS_B);
        else ADD_SQUARE(TERMS_A);
#undef ADD_SQUARE
        #pragma unroll
        for (int v = 0; v < OWN_ATOMS; ++v) {
            gx[v] += own[v].gx;
            gy[v] += own[v].gy;
            gz[v] += own[v].gz;
            if (step > 0) {
                const int j = v * LANES + lane;
                global real *out = recoil + recoil_place(conformation, step, tile, n_tiles) + j;
                out[0] += met_recoil[j].x;
                out[n_places] += met_recoil[j].y;
                out[2 * n_places] += met_recoil[j].z;
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    global real *out = sums + (((size_t)conformation * n_chunks + chunk) * PAIR_SUMS + GRADIENT_SUM) * n_places;
    #pragma unroll
    for (int v = 0; v < OWN_ATOMS; ++v) {
        const int i = start + v * LANES + lane;
        out[i] += gx[v];
        out[n_places + i] += gy[v];
        out[2 * n_places + i] += gz[v];
    }
}
