// HCT sums over tiles of spatially sorted atoms, row by row, for GPUs; why so: docs/variants.md, "tiled".
//
// A work-item owns a vector of WIDTH atoms of each of the ROW tiles of a row, and walks the tiles of one chunk (second
// dimension) of one conformation (third dimension). An atom that is loaded serves all of its own: a GPU waits for
// loads, not for sums.
// Whole tiles are near or far by their boxes: far ones take a short series without a test, near ones test each pair.
// Positions are relative to their tile's origin, so float32 keeps its digits in large structures. Each atom sums its own
// row: no atomics, the same bits every run.
#include "common/real.clh"
#include "physics/hct.clh"
#include "common/tiles.clh"
#include "solvent/hct_tiles.clh"
#ifndef TILE
#error "TILE: atoms in a tile; a multiple of WIDTH"
#endif
#include "solvent/hct_rows.clh"
#ifndef FUSED
#error "FUSED: 1 where the last group of a row adds the parts up and finds what follows, for the energy; else 0"
#endif
#if FUSED
#include "energy/sums.clh"
#include "energy/terms.clh"
#include "common/hand_over.clh"
#define RHO parameters
#else
#define RHO rho
#endif

kernel __attribute__((reqd_work_group_size(TILE / WIDTH, 1, 1)))
void born_sums(
    const int n_tiles,
    const int tiles_per_chunk,
    const Reaches reaches,
    NECK_ARGUMENTS(restrict)
    global const real4 *restrict atoms,    // (n_conformations, n_slots) x, y, z from the tile's origin [A], scaled radius [A]
#if !FUSED
    global const real *restrict x,         // (n_conformations, n_slots) the same x, y, z as columns, for whole vectors
    global const real *restrict y,
    global const real *restrict z,
    global const real *restrict rho,       // (n_slots) offset radius [A]
#endif
    global const real4 *restrict series,   // (n_conformations, n_slots, 2) x^2 + y^2 + z^2, then coefficients of r^-4, r^-6, ... r^-16
    global const real4 *restrict origins,  // (n_conformations, n_tiles) origin [A]; w = largest scaled radius [A]
    global const real4 *restrict extents,  // (n_conformations, n_tiles) half edges of the box around the origin [A]
    global const int *restrict counts,     // (n_tiles) atoms in the tile
#if FUSED
    RADIUS_CONSTANTS(restrict),            // physics/gb_radius.clh
    const real4 solvent,                   // solute over solvent dielectric, kappa [1/A], 4 pi tension, probe radius [A]
    ATOM_ARGUMENTS(restrict),
    global int *arrivals,                  // (n_conformations, n_rows) 0
#endif
    global real *sums)                     // (n_conformations, n_chunks, n_slots) part of the Born integral [1/A]
{
    local real4 own_origins[ROW], own_extents[ROW];
    MET_MEMORY(TILE);
    // From the global number: a long launch comes in pieces, in each of which the groups are numbered anew.
    const int row = get_global_id(0) / (TILE / WIDTH) * ROW, within = get_local_id(0) * WIDTH;
    const int chunk = get_global_id(1), conformation = get_global_id(2);
    const int n_slots = n_tiles * TILE, n_chunks = (n_tiles + tiles_per_chunk - 1) / tiles_per_chunk;
    const size_t at = (size_t)conformation * n_slots, box = (size_t)conformation * n_tiles;
    // The last row repeats the last tile where tiles are wanting.
#define OWN_TILE(v) min(row + (v), n_tiles - 1)
    for (int v = get_local_id(0); v < ROW; v += TILE / WIDTH) {
        own_origins[v] = origins[box + OWN_TILE(v)];
        own_extents[v] = extents[box + OWN_TILE(v)];
    }
    realv total[ROW];
    #pragma unroll
    for (int v = 0; v < ROW; ++v) total[v] = 0;
    const int end = min((chunk + 1) * tiles_per_chunk, n_tiles);
    for (int tile = chunk * tiles_per_chunk; tile < end; ++tile) {
        Met met = MET_AT(0, counts[tile]);
        barrier(CLK_LOCAL_MEM_FENCE);
        stage_tile(&met, within, atoms, series, at + tile * TILE);
#if NECK
        stage_kinds(&met, within, RHO, kinds, tile * TILE);
#endif
        const real4 origin = origins[box + tile], extent = extents[box + tile];
        const real s = origin.w, s_square = s * s, least_far = least_far_gap2(s, &reaches, extent);
        Own own[ROW];
        real gap2[ROW], nearest = MAXFLOAT;
        bool cut[ROW], any_cut = false;
        barrier(CLK_LOCAL_MEM_FENCE);
        #pragma unroll
        for (int v = 0; v < ROW; ++v) {
            const real4 shift = own_origins[v] - origin;
            const int i = OWN_TILE(v) * TILE + within;
#if FUSED
            const real4 own_point = atoms[at + i];
            own[v].x = own_point.x + shift.x;
            own[v].y = own_point.y + shift.y;
            own[v].z = own_point.z + shift.z;
#else
            own[v].x = LOAD(at + i, x) + shift.x;
            own[v].y = LOAD(at + i, y) + shift.y;
            own[v].z = LOAD(at + i, z) + shift.z;
#endif
            own[v].sum = 0;
            gap2[v] = box_gap2(shift, own_extents[v], extent);
            nearest = fmin(nearest, gap2[v]);
            cut[v] = beyond_limit(box_span2(shift, own_extents[v], extent), s, &reaches);
            any_cut = any_cut || cut[v];
        }
        if (nearest <= least_far || any_cut) {
            #pragma unroll
            for (int v = 0; v < ROW; ++v) {
                if (out_of_reach(gap2[v], s, &reaches)) continue;
                if (gap2[v] > least_far && !cut[v]) add_far_tile(own + v, 1, &met, TERMS_A);
                else {
                    const realv own_rho = LOAD(OWN_TILE(v) * TILE + within, RHO);
#if NECK
                    own[v].necks = neck_row(n_slots, OWN_TILE(v) * TILE + within, OF_NECKS);
                    if (gap2[v] > series_gap2(s, &reaches, extent) && !cut[v])
                        add_far_tile_and_necks(own + v, own_rho, &met, TERMS_A, &reaches);
                    else
#endif
                    add_near_tile(own + v, own_rho, &met, &reaches);
                }
            }
        }
        else if (nearest > (real)(FAR_C * FAR_C) * s_square) add_far_tile(own, ROW, &met, TERMS_C);
        else if (nearest > (real)(FAR_B * FAR_B) * s_square) add_far_tile(own, ROW, &met, TERMS_B);
        else add_far_tile(own, ROW, &met, TERMS_A);
        // Summing tile by tile keeps the runs short, so that float32 sums over 100,000 atoms stay good to 1e-6.
        #pragma unroll
        for (int v = 0; v < ROW; ++v) total[v] += own[v].sum;
    }
    global real *own_sums = sums + ((size_t)conformation * n_chunks + chunk) * n_slots;
    #pragma unroll
    for (int v = 0; v < ROW; ++v) STORE(total[v], OWN_TILE(v) * TILE + within, own_sums);
#if FUSED
    // The row's last group goes on; a work-item has one atom of each tile.
    local int is_last;
    const int n_rows = (n_tiles + ROW - 1) / ROW;
    PUBLISH();
    if (within == 0) is_last = arrives_last(arrivals + (size_t)conformation * n_rows + row / ROW, n_chunks);
    TAKE_OVER();
    if (!is_last) return;
    local real born_radii[TILE];
    for (int tile = row; tile < min(row + ROW, n_tiles); ++tile) {
        const int i = tile * TILE + within;
        const real integral = sum_of_parts(sums + (size_t)conformation * n_chunks * n_slots + i, 0, n_chunks, 1, n_slots);
        born_radii[within] = keep_terms(i, at + i, n_slots, integral, CONSTANTS_OF(i), solvent, OF_ATOMS);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (within == 0) largest_born[box + tile] = largest_of(born_radii, TILE);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
#endif
}
