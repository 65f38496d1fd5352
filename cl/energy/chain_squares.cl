// The chain rule by tile pairs, each pair of atoms once for both of them, for GPUs; energy/chain.clh. Shared out as in
// energy/pair_squares.cl.
#include "common/real.clh"
#include "physics/hct.clh"
#include "solvent/hct_tiles.clh"
#include "common/tiles.clh"
#include "energy/squares.clh"
#include "energy/chain.clh"
#include "energy/collect.clh"

// The tile that is met; its atoms stand twice, one after the other, which spares going around its end.
typedef struct {
    local const real4 *points;  // x, y, z, weight
    local const real4 *first;   // coefficients of r^-6 to r^-12
    local const real4 *rest;    // of r^-14 to r^-18, scaled radius
    local const real *rhos;
#if NECK
    local const int *kinds;
#endif
    local real4 *recoil;
} Met;

INLINE void push(Own *own, real4 *back, real slope, real dx, real dy, real dz) {
    own->gx += slope * dx;
    own->gy += slope * dy;
    own->gz += slope * dz;
    back->x -= slope * dx;
    back->y -= slope * dy;
    back->z -= slope * dz;
}

// Of `n` of the own atoms, a constant. series: their coefficients, a column for each power; terms, a constant: of the series.
INLINE void add_far_square(
    Own *own, const int n, const int *slots, const Met *met, int lane, global const real *series, int n_slots,
    const int terms) {
    real a[ROW][7];
    #pragma unroll
    for (int v = 0; v < n; ++v)
        #pragma unroll
        for (int k = 0; k < 7; ++k) a[v][k] = k < terms ? series[k * n_slots + slots[v]] : (real)0;
    for (int turn = 0; turn < TURNS; ++turn) {
        const int j = lane + FIRST_TURN + turn;
        const real4 other = met->points[j], b = met->first[j];
        real4 c = 0, back = met->recoil[j];
        if (terms > 4) c = met->rest[j];
        #pragma unroll
        for (int v = 0; v < n; ++v) {
            const real dx = own[v].x - other.x, dy = own[v].y - other.y, dz = own[v].z - other.z;
            const real inv_r2 = inverse(dx * dx + dy * dy + dz * dz);
            const real slope = FAR_SLOPE(inv_r2, terms, own[v].weight, b, c, other.w, a[v][0], a[v][1], a[v][2], a[v][3],
                                         a[v][4], a[v][5], a[v][6]);
            push(own + v, &back, slope, dx, dy, dz);
        }
        met->recoil[j] = back;
        TURN_BARRIER();
    }
}

// Of one own atom.
INLINE void add_near_square(Own *own, const Met *met, int lane, const Reaches *reaches, real largest_s) {
    for (int turn = 0; turn < TURNS; ++turn) {
        const int j = lane + FIRST_TURN + turn;
        real4 back = met->recoil[j];
        Other other;
        other.sphere = met->points[j];
        other.weight = other.sphere.w;
        other.sphere.w = met->rest[j].w;
        other.rho = met->rhos[j];
#if NECK
        other.kind = met->kinds[j];
#endif
        const real dx = own->x - other.sphere.x, dy = own->y - other.sphere.y, dz = own->z - other.sphere.z;
        const real slope = near_slope(own, &other, dx * dx + dy * dy + dz * dz, largest_s, reaches);
        push(own, &back, slope, dx, dy, dz);
        met->recoil[j] = back;
        TURN_BARRIER();
    }
}

#if NECK
// Of one own atom that may have necks with atoms of the tile. series: as above
INLINE void add_far_square_and_necks(
    Own *own, int slot, const Met *met, int lane, const Reaches *reaches, global const real *series, int n_slots,
    const int terms) {
    real a[7];
    #pragma unroll
    for (int k = 0; k < 7; ++k) a[k] = k < terms ? series[k * n_slots + slot] : (real)0;
    for (int turn = 0; turn < TURNS; ++turn) {
        const int j = lane + FIRST_TURN + turn;
        const real4 b = met->first[j], c = met->rest[j];
        real4 back = met->recoil[j];
        Other other = {met->points[j], met->rhos[j], 0, met->kinds[j]};
        other.weight = other.sphere.w;
        const real dx = own->x - other.sphere.x, dy = own->y - other.sphere.y, dz = own->z - other.sphere.z;
        const real r2 = dx * dx + dy * dy + dz * dz, inv_r2 = inverse(r2);
        const real slope = FAR_SLOPE(inv_r2, terms, own->weight, b, c, other.weight, a[0], a[1], a[2], a[3], a[4], a[5], a[6])
                         + necks_slope(own, &other, r2, reaches);
        push(own, &back, slope, dx, dy, dz);
        met->recoil[j] = back;
        TURN_BARRIER();
    }
}
#endif

kernel __attribute__((reqd_work_group_size(TILE, SHARES, 1)))
void chain_squares(
    const int n_tiles,
    const Reaches reaches,
    NECK_ARGUMENTS(restrict)
    global const real4 *restrict spheres,   // (n_conformations, n_slots) x, y, z from the tile's origin, s [A]
    global const real *restrict rho,        // (n_slots) offset radius [A]
    global const real4 *restrict series,    // (n_slots, 2) coefficients of r^-6, r^-8, ... r^-18
    global const real *restrict columns,    // (7, n_slots) the same as columns
    global const real4 *restrict origins,   // (n_conformations, n_tiles) origin [A]; w = largest scaled radius [A]
    global const real4 *restrict extents,   // (n_conformations, n_tiles) half edges of the box around the origin [A]
    COLLECT_ARGUMENTS(restrict))
{
    local real4 met_points[2 * TILE], met_first[2 * TILE], met_rest[2 * TILE], all_recoil[SHARES * 2 * TILE];
    local real met_rhos[2 * TILE];
    local real4 *met_recoil = all_recoil + get_local_id(1) * 2 * TILE;
#if NECK
    local int met_kinds[2 * TILE];
    const Met met = {met_points, met_first, met_rest, met_rhos, met_kinds, met_recoil};
#else
    const Met met = {met_points, met_first, met_rest, met_rhos, met_recoil};
#endif
    const int lane = get_local_id(0), row = get_group_id(0);
    const bool first_share = get_local_id(1) == 0;
    const int chunk = get_group_id(1), conformation = get_global_id(2);
    const int n_slots = n_tiles * TILE, n_rows = rows_of(n_tiles);
    const int n_own = min(ROW, n_tiles - row * ROW);
    const size_t at = (size_t)conformation * n_slots, box = (size_t)conformation * n_tiles;
    const int begin = ring.first_step + chunk * ring.steps_per_chunk;
    const int end = min(min(begin + ring.steps_per_chunk, ring.end_step), last_step_of(row, n_rows) + 1);

    real gx[ROW], gy[ROW], gz[ROW];
    int own_tiles[ROW], slots[ROW];
    #pragma unroll
    for (int v = 0; v < ROW; ++v) {
        gx[v] = gy[v] = gz[v] = 0;
        own_tiles[v] = row * ROW + min(v, n_own - 1);
        slots[v] = own_tiles[v] * TILE + lane;
    }
    for (int step = begin; step < end; ++step) {
        const int first = (row + step) % n_rows * ROW, last = min(first + ROW, n_tiles);
        for (int tile = first; tile < last; ++tile) {
#if SHARES > 1
            barrier(CLK_LOCAL_MEM_FENCE);  // until no share needs the tile before
#endif
            if (first_share) {
                const int k = tile * TILE + lane;
                const real4 sphere = spheres[at + k], rest = series[2 * k + 1];
                met_points[lane] = met_points[lane + TILE] = (real4)(sphere.x, sphere.y, sphere.z, weights[at + k]);
                met_first[lane] = met_first[lane + TILE] = series[2 * k];
                met_rest[lane] = met_rest[lane + TILE] = (real4)(rest.x, rest.y, rest.z, sphere.w);
                met_rhos[lane] = met_rhos[lane + TILE] = rho[k];
#if NECK
                met_kinds[lane] = met_kinds[lane + TILE] = kinds[k];
#endif
            }
            met_recoil[lane] = met_recoil[lane + TILE] = 0;
            const real4 origin = origins[box + tile], extent = extents[box + tile];
            Own own[ROW];
            real gap2[ROW], largest_s[ROW], nearest = MAXFLOAT, widest = 0;
            bool far[ROW], takes_series[ROW], all_far = n_own == ROW;
            #pragma unroll
            for (int v = 0; v < ROW; ++v) {
                const real4 own_origin = origins[box + own_tiles[v]], shift = own_origin - origin;
                const real4 own_sphere = spheres[at + slots[v]];
                own[v].x = own_sphere.x + shift.x;
                own[v].y = own_sphere.y + shift.y;
                own[v].z = own_sphere.z + shift.z;
                own[v].rho = rho[slots[v]];
                own[v].s = own_sphere.w;
                own[v].weight = weights[at + slots[v]];
                own[v].gx = own[v].gy = own[v].gz = 0;
                const real4 own_extent = extents[box + own_tiles[v]];
                largest_s[v] = fmax(own_origin.w, origin.w);
                gap2[v] = box_gap2(shift, own_extent, extent);
                takes_series[v] = take_series(gap2[v], box_span2(shift, own_extent, extent), largest_s[v], &reaches);
                far[v] = takes_series[v] && gap2[v] >= necks_end2(&reaches);
                nearest = fmin(nearest, gap2[v]);
                widest = fmax(widest, largest_s[v]);
                all_far = all_far && far[v];
            }
            const real s_square = widest * widest;
            barrier(CLK_LOCAL_MEM_FENCE);
#define ADD_FAR_SQUARE(own, n, slots, terms) add_far_square(own, n, slots, &met, lane, columns, n_slots, terms)
            if (!all_far) {
                #pragma unroll
                for (int v = 0; v < ROW; ++v) {
                    if (v < n_own && !out_of_reach(gap2[v], largest_s[v], &reaches)) {
                        if (far[v]) ADD_FAR_SQUARE(own + v, 1, slots + v, TERMS_A);
                        else {
#if NECK
                            own[v].necks = neck_row(n_slots, slots[v], OF_NECKS);
                            if (takes_series[v])
                                add_far_square_and_necks(
                                    own + v, slots[v], &met, lane, &reaches, columns, n_slots, TERMS_A);
                            else
#endif
                            add_near_square(own + v, &met, lane, &reaches, origins[box + own_tiles[v]].w);
                        }
                    }
                }
            }
            else if (nearest > (real)(FAR_C * FAR_C) * s_square) ADD_FAR_SQUARE(own, ROW, slots, TERMS_C);
            else if (nearest > (real)(FAR_B * FAR_B) * s_square) ADD_FAR_SQUARE(own, ROW, slots, TERMS_B);
            else ADD_FAR_SQUARE(own, ROW, slots, TERMS_A);
#undef ADD_FAR_SQUARE
            #pragma unroll
            for (int v = 0; v < ROW; ++v) {
                gx[v] += own[v].gx;
                gy[v] += own[v].gy;
                gz[v] += own[v].gz;
            }
            const real4 back = over_shares(met_recoil[lane] + met_recoil[lane + TILE], all_recoil);
            if (first_share && step > 0)
                layers[layer_slot(&ring, conformation, layer_of_step(&ring, step), tile, n_tiles) + lane] = back;
        }
    }
    #pragma unroll
    for (int v = 0; v < ROW; ++v) {
        const real4 own_total = over_shares((real4)(gx[v], gy[v], gz[v], 0), all_recoil);
        if (first_share && v < n_own) layers[layer_slot(&ring, conformation, chunk, own_tiles[v], n_tiles) + lane] = own_total;
    }
#if FUSED
    local int last_tiles[TILE];
    volatile local int n_last;
    collect_last(row, begin, end, n_tiles, all_recoil, last_tiles, &n_last, COLLECTED);
#endif
}
