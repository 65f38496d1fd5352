// All steps of the solvent energy in one launch, for small molecules on GPUs, whose time is dominated by launches.
// Steps are synchronized by common/tickets.clh. Tickets: tiles to be placed, chunks of a tile's Born sums, and chunks
// of its potential; each takes as many chunks as work-items share an atom. Third dimension: conformations, each with
// separate tickets.
#include "common/real.clh"
#include "common/place.clh"
#include "common/tickets.clh"
#include "solvent/born_chunk.clh"
#include "solvent/atoms.clh"
#include "solvent/potential.clh"

// Counters of a conformation: tickets drawn; finished tiles placed, with radii, and with energies.
enum { DRAWN, PLACED_TILES, TILES_WITH_RADII, TILES_WITH_ENERGIES, COUNTERS };
#define COUNTER(which) (counters + (which) * COUNTER_STEP)

typedef union {
    PlaceMemory place[SHARES];
    BornMemory sums;
    real parts[2 * SHARES * TILE];
} Memory;

kernel __attribute__((reqd_work_group_size(TILE, SHARES, 1)))
void joined(
    const int n_tiles,
    const int n_atoms,
    const real step,                              // length of a coordinate unit [A]
    const coordinate origin_step,                 // Placing, common/place.clh
    const int tiles_per_chunk,                    // BornChunks, solvent/born_chunk.clh
    const Reaches reaches,
    NECK_PARAMETERS
    RADIUS_PARAMETER,                       // physics/gb_radius.clh
    const real4 solvent,                          // see keep_atom
    const real inv_inside,                        // Potential, solvent/potential.clh
    const real inv_outside,
    const real kappa,
    global const coordinate *restrict positions,  // (n_conformations, n_atoms, 3)
    // Constants of the molecule; see Placing, BornChunks and radius_of_slot.
    global const int *restrict order,
    global const int *restrict counts,
    global const real *restrict largest_s,
    global const real *restrict s,
    global const real *restrict charges,
    global const real4 *restrict coefficients,
    global const real *restrict rho,
    global const real *restrict radii,
    // Written by one group and read by another, hence never cached as constant.
    global real4 *spheres,
    global real4 *points,
    global real *x,
    global real *y,
    global real *z,
    global real4 *series,
    global real4 *origins,
    global real4 *extents,
    global real *sums,
    global real *inv_born,
    global real *potential,
    global real *results,
    global int *arrivals,                         // (n_conformations, n_tiles) 0
    volatile global int *counters)                // (n_conformations, COUNTERS, COUNTER_STEP) 0
{
    local Memory memory;
    local int drawn, last;
    const int first_frozen = n_tiles;  // no tile is frozen
    const int lane = get_local_id(0), share = get_local_id(1), conformation = get_global_id(2);
    const bool first = lane == 0 && share == 0;
    counters += (size_t)conformation * COUNTERS * COUNTER_STEP;
    arrivals += (size_t)conformation * n_tiles;
    if (first) drawn = draw_ticket(COUNTER(DRAWN));
    barrier(CLK_LOCAL_MEM_FENCE);
    int ticket = drawn;

    const int n_lots = (n_tiles + SHARES - 1) / SHARES;
    if (ticket < n_lots) {
        const int tile = ticket * SHARES + share;
        const Placing placing = {
            n_tiles, n_atoms, step, origin_step, positions, order, largest_s, s, charges, coefficients, spheres, points, x, y, z,
            series, origins, extents};
        place_tile(tile, lane, tile < n_tiles, memory.place + share, &placing);
        PUBLISH();
        if (first) count_done(COUNTER(PLACED_TILES), min(SHARES, n_tiles - ticket * SHARES));
        return;
    }
    ticket -= n_lots;
    const int n_chunks = number_of_chunks(n_tiles, tiles_per_chunk), tile = ticket % n_tiles, i = tile * TILE + lane;
    if (ticket < n_tiles * n_chunks) {
        if (first) wait_for(COUNTER(PLACED_TILES), n_tiles);
        TAKE_OVER();
        const BornChunks born = {
            n_tiles, first_frozen, tiles_per_chunk, reaches, NECKS_GIVEN, spheres, COLUMNS_GIVEN, rho, series, origins, extents,
            counts, sums};
        add_chunk(tile, ticket / n_tiles, &memory.sums, &born);
        if (!group_arrives_last(arrivals + tile, n_chunks, &last)) return;
        radius_of_slot(
            i, n_tiles, n_atoms, n_chunks, memory.parts, radius_constants, solvent, sums, rho, radii, charges, order,
            counts, inv_born, results);
        PUBLISH();
        if (first) count_done(COUNTER(TILES_WITH_RADII), 1);
        return;
    }
    ticket -= n_tiles * n_chunks;
    const int chunk = ticket / n_tiles * SHARES + share;
    if (first) wait_for(COUNTER(TILES_WITH_RADII), n_tiles);
    TAKE_OVER();
    const Potential all = {
        n_tiles, tiles_per_chunk, inv_inside, inv_outside, kappa, points, COLUMNS_GIVEN, inv_born, origins, extents, counts,
        potential};
    if (chunk < n_chunks) add_potential(i, chunk, &all);
    if (!group_arrives_last(arrivals + tile, (n_chunks + SHARES - 1) / SHARES, &last)) return;
    pair_energy_of_slot(i, n_tiles, n_atoms, n_chunks, memory.parts, potential, charges, order, counts, results);
    // The group with the last energies resets the counters; no other group reads them any more.
    if (first && atomic_inc(COUNTER(TILES_WITH_ENERGIES)) == n_tiles - 1)
        for (int k = 0; k < COUNTERS; ++k) *COUNTER(k) = 0;
}
