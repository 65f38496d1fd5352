// All steps of `squares` in one launch, for small molecules on GPUs, whose time is dominated by launches. Steps are
// synchronized by common/tickets.clh. Tickets: tiles to be placed, groups of bonded terms (TERMS_FIRST), chunks of Born
// sums, of pair energies and of the chain rule (CHAIN). Third dimension: conformations, each with separate tickets.
#include "common/real.clh"
#include "common/place.clh"
#include "common/tickets.clh"
#include "energy/squares/born.clh"
#include "energy/squares/pair.clh"
#include "energy/squares/chain.clh"
#ifndef CHAIN
#error "CHAIN: 1 where Born radii follow the positions in the gradient, else 0"
#endif
#if TERMS_FIRST
#include "energy/terms/bonded.clh"
#endif

// Counters of a conformation. DRAWN: tickets drawn; others: finished tiles placed, rows with radii, groups of bonded
// terms, tiles with weights and tiles with results.
enum { DRAWN, PLACED_TILES, ROWS_WITH_RADII, BONDED_GROUPS, TILES_WITH_WEIGHTS, TILES_WITH_RESULTS, COUNTERS };
#define COUNTER(which) (counters + (which) * COUNTER_STEP)

typedef union {
    PlaceMemory place[SHARES];
    RadiiMemory radii;
    PairMemory pair;
#if CHAIN
    ChainMemory chain;
#endif
#if TERMS_FIRST
    BondedMemory bonded;
#endif
} Memory;

kernel __attribute__((reqd_work_group_size(TILE, SHARES, 1)))
void joined(
    const int n_tiles,
    const int n_atoms,
    const int n_results,                          // Layers, energy/squares/collect.clh
    const real step,                              // length of a coordinate unit [A]
    const coordinate origin_step,                 // Placing, common/place.clh
    const int tiles_per_chunk,                    // BornChunks, solvent/born_chunk.clh
    const Reaches reaches,
    NECK_PARAMETERS
    RADIUS_PARAMETER,                       // physics/gb_radius.clh
    const real4 solvent,                          // SingleAtoms, energy/terms.clh
    const PairModel model,
    const RingSteps ring,                         // of the pair energies
#if TERMS_FIRST
    BONDED_PARAMETERS,
#endif
    global const coordinate *restrict positions,  // (n_conformations, n_atoms, 3)
    // Constants of the molecule; see Placing, SingleAtoms, PairSquares and ChainSquares.
    global const int *restrict order,
    global const int *restrict counts,
    global const real *restrict largest_s,
    global const real *restrict s,
    global const real *restrict charges,
    global const real4 *restrict coefficients,
    global const real *restrict parameters,
    global const int *restrict special_starts,
    global const int *restrict specials,
    global const SAME_BITS *restrict masks,
#if CHAIN
    global const real4 *restrict slopes,
    global const real *restrict slope_columns,
#endif
    // Written by one group and read by another, hence never cached as constant.
    global real4 *spheres,
    global real4 *points,
    global real *x,
    global real *y,
    global real *z,
    global real4 *series,
    global real4 *origins,
    global real4 *extents,
    global real *sums,                            // BornChunks
    global real4 *traits,
    global real4 *singles,
    global real *born,
    global real *largest_born,
    global real4 *layers,                         // Layers
    global real4 *energies,
    global real4 *totals,
    global int *arrivals,
    global real *weights,
    global real *results,
    volatile global int *counters)                // (n_conformations, COUNTERS, COUNTER_STEP) 0
{
    local Memory memory;
    local int drawn;
    global const real *rho = parameters;
    const int first_frozen = n_tiles;  // molecules with frozen atoms use separate launches
    const int lane = get_local_id(0), share = get_local_id(1), item = share * TILE + lane;
    const bool first = item == 0;
    counters += (size_t)get_global_id(2) * COUNTERS * COUNTER_STEP;
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
#if TERMS_FIRST
    const int n_bonded = bonded_groups(n_atoms);
    if (ticket < n_bonded) {
        const Bonded bonded = {
            n_atoms, n_results, n_energies, first_energy, n_terms, per_atom, n_slots, step, cutoff2, positions, kind_starts,
            members, places, details, constants, slot_starts, all_slots, results};
        add_bonded(ticket, item, &memory.bonded, &bonded);
        PUBLISH();
        if (first) count_done(COUNTER(BONDED_GROUPS), 1);
        return;
    }
    ticket -= n_bonded;
#endif
    const int n_rows = rows_of(n_tiles), n_chunks = number_of_chunks(n_tiles, tiles_per_chunk);
    if (ticket < n_rows * n_chunks) {
        const int row = ticket % n_rows * ROW;
        if (first) wait_for(COUNTER(PLACED_TILES), n_tiles);
        TAKE_OVER();
        const BornChunks chunks = {
            n_tiles, first_frozen, tiles_per_chunk, reaches, NECKS_GIVEN, spheres, COLUMNS_GIVEN, rho, series, origins, extents,
            counts, sums};
        const SingleAtoms atoms = {radius_constants, solvent, parameters, traits, singles, born, largest_born};
        add_chunk(row, ticket / n_rows, &memory.radii.sums, &chunks);
        if (!radii_of_row(row, &memory.radii, &chunks, arrivals, &atoms)) return;
        PUBLISH();
        if (first) count_done(COUNTER(ROWS_WITH_RADII), 1);
        return;
    }
    ticket -= n_rows * n_chunks;
    const Layers to = LAYERS_GIVEN;
    int n_collected;
    if (ticket < n_rows * ring.n_chunks) {
        if (first) wait_for(COUNTER(ROWS_WITH_RADII), n_rows);
#if TERMS_FIRST && !CHAIN
        if (first) wait_for(COUNTER(BONDED_GROUPS), n_bonded);
#endif
        TAKE_OVER();
        const PairSquares pairs = {
            first_frozen, model, points, traits, origins, extents, largest_born, counts, special_starts, specials, masks};
        n_collected = add_pairs(ticket % n_rows, ticket / n_rows, &memory.pair, &pairs, ring, &to);
#if CHAIN
        if (n_collected == 0) return;
        PUBLISH();
        if (first) count_done(COUNTER(TILES_WITH_WEIGHTS), n_collected);
        return;
#endif
    }
#if CHAIN
    else {
        ticket -= n_rows * ring.n_chunks;
        if (first) {
            wait_for(COUNTER(TILES_WITH_WEIGHTS), n_tiles);
#if TERMS_FIRST
            wait_for(COUNTER(BONDED_GROUPS), n_bonded);
#endif
        }
        TAKE_OVER();
        const ChainSquares chain = {
            first_frozen, reaches, NECKS_GIVEN, spheres, weights, rho, slopes, slope_columns, origins, extents};
        RingSteps last_ring = ring;
        last_ring.starts_totals = 0;
        last_ring.then = KEEP_RESULTS;
        n_collected = add_chain(ticket % n_rows, ticket / n_rows, &memory.chain, &chain, last_ring, &to);
    }
#endif
    // The group with the last results resets the counters; no other group reads them any more.
    if (!first || n_collected == 0) return;
    if (atomic_add(COUNTER(TILES_WITH_RESULTS), n_collected) + n_collected == n_tiles)
        for (int k = 0; k < COUNTERS; ++k) *COUNTER(k) = 0;
}
