// Born radii and per-atom energies on GPUs; all pairs of an atom are summed by the same work-items. Third dimension:
// conformations.
#include "common/real.clh"
#include "engine/arguments.clh"
#include "physics/hct.clh"
#include "common/tiles.clh"
#include "solvent/hct_tiles.clh"
#include "energy/rows.clh"
#include "solvent/hct_rows.clh"
#include "energy/terms.clh"

kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void born_rows(
    const int n_tiles,
    const Reaches reaches,
    NECK_PARAMETERS
    RADIUS_PARAMETER,                // physics/gb_radius.clh
    const real4 solvent,                   // solute over solvent dielectric, kappa [1/A], 4 pi tension, probe radius [A]
    global const real4 *restrict spheres,  // (n_conformations, n_slots) x, y, z from the tile's origin [A], scaled radius [A]
    global const real *restrict x,         // (n_conformations, n_slots) the same x, y, z as columns, for whole vectors
    global const real *restrict y,
    global const real *restrict z,
    global const real4 *restrict series,   // (n_conformations, n_slots, 2) x^2 + y^2 + z^2, then coefficients of r^-4, r^-6, ... r^-16
    global const real4 *restrict origins,  // (n_conformations, n_tiles) origin [A]; w = largest scaled radius [A]
    global const real4 *restrict extents,  // (n_conformations, n_tiles) half edges of the box around the origin [A]
    global const int *restrict counts,     // (n_tiles) atoms in the tile
    global const real *restrict parameters, // SingleAtoms, energy/terms.clh
    global real4 *restrict traits,
    global real4 *restrict singles,
    global real *restrict born,
    global real *restrict largest_born)
{
    SERVES_ROWS(born_rows)
    local real scratch[PARTS * TILE], integrals[TILE];
    local struct { MET_MEMBERS(PARTS * TILE) } memory;
    const int item = get_local_id(0), part = item / ITEMS, own_tile = get_group_id(0), conformation = get_global_id(2);
    const int n_slots = n_tiles * TILE, within = item % ITEMS * WIDTH, first = own_tile * TILE + within;
    const size_t at = (size_t)conformation * n_slots, box = (size_t)conformation * n_tiles;
    const real4 origin = origins[box + own_tile], extent = extents[box + own_tile];
    const realv own_x = LOAD(at + first, x), own_y = LOAD(at + first, y), own_z = LOAD(at + first, z);
    const realv own_rho = LOAD(first, parameters);
    const Necks of_necks = NECKS_GIVEN;
    const SingleAtoms atoms = {radius_constants, solvent, parameters, traits, singles, born, largest_born};
    realv total = 0;
    for (int start = 0; start < n_tiles; start += PARTS) {
        const int tile = start + part;
        BornMet met = MET_AT(&memory, part * TILE, 0);
        if (tile < n_tiles) {
            met.count = counts[tile];
            stage_tile(&met, within, spheres, series, at + tile * TILE);
#if NECK
            stage_kinds(&met, within, parameters, kinds, tile * TILE);
#endif
        }
        PART_BARRIER();
        if (tile < n_tiles) {
            const real4 met_origin = origins[box + tile], shift = origin - met_origin, met_extent = extents[box + tile];
            const real s = met_origin.w, s_square = s * s, gap2 = box_gap2(shift, extent, met_extent);
            BornOwn own;
            own.x = own_x + shift.x;
            own.y = own_y + shift.y;
            own.z = own_z + shift.z;
            own.sum = 0;
            own.necks = neck_row(n_slots, first, &of_necks);
            const bool cut = beyond_limit(box_span2(shift, extent, met_extent), s, &reaches);
            if (out_of_reach(gap2, s, &reaches)) own.sum = 0;
            else if (cut || gap2 <= least_far_gap2(s, &reaches, met_extent)) add_near_tile(&own, own_rho, &met, &reaches);
            else if (gap2 > (real)(FAR_C * FAR_C) * s_square) add_far_tile(&own, 1, &met, TERMS_C);
            else if (gap2 > (real)(FAR_B * FAR_B) * s_square) add_far_tile(&own, 1, &met, TERMS_B);
            else add_far_tile(&own, 1, &met, TERMS_A);
            // Partial sums per tile keep float32 accurate.
            total += own.sum;
        }
        PART_BARRIER();
    }
    add_parts(&total, 1, scratch, integrals);
    for (int k = item; k < TILE; k += GROUP)
        integrals[k] = keep_terms(own_tile * TILE + k, at + own_tile * TILE + k, n_slots, integrals[k], &atoms);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item == 0) largest_born[box + own_tile] = largest_of(integrals, TILE);
}
