// All steps of `blocks` in one launch, for small molecules on CPUs, whose time is dominated by launches. Steps are
// synchronized by common/tickets.clh. A group is one work-item, which draws tickets until there are none left. Tickets:
// batches of tiles to be placed, parts of the Born sums, groups of bonded terms (TERMS_FIRST), which depend on nothing
// and so fill the time until the last Born sums are complete, batches of tiles with radii, parts of the pair energies,
// batches of tiles with weights and parts of the chain rule (CHAIN), batches of tiles to be finished.
#include "common/real.clh"
#include "common/place.clh"
#include "common/runs.clh"
#include "common/tickets.clh"
#include "solvent/blocks.clh"
#include "energy/pair_blocks.clh"
#include "energy/chain_blocks.clh"
#include "energy/terms.clh"
#include "energy/finish.clh"
#ifndef CHAIN
#error "CHAIN: 1 where Born radii follow the positions in the gradient, else 0"
#endif
#if TERMS_FIRST
#define barrier(flags)  // a group is one work-item
#include "energy/terms/bonded.clh"
#undef barrier
#endif

// Counters: tickets drawn; groups that have left; progress of each step; and whether each step is complete.
enum { PLACED_TILES, BONDED_GROUPS, BORN_PARTS, TILES_WITH_RADII, PAIR_PARTS, TILES_WITH_WEIGHTS, CHAIN_PARTS, STEPS };
enum { DRAWN, LEFT, DONE, IS_DONE = DONE + STEPS, COUNTERS = IS_DONE + STEPS };
#define COUNTER(which) (counters + (which) * COUNTER_STEP)

// Makes all writes visible to groups that wait for this step. They poll a flag set by the last group, not the counter,
// so that additions to the counter do not contend with polling.
INLINE void publish(volatile global int *counters, int step, int number, int all) {
    DEVICE_FENCE();
    if (atomic_add(COUNTER(DONE + step), number) + number < all) return;
    DEVICE_FENCE();
    atomic_xchg(COUNTER(IS_DONE + step), 1);
}
#define WAIT_FOR(step) wait_for(COUNTER(IS_DONE + (step)), 1)

#define VECTORS (TILE / WIDTH)  // per tile

kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void blocks_joined(
    const int n_groups,                           // of the launch
    const int n_tiles,
    const int per_lot,                            // tiles per batch
    const int n_parts,
    RUNS_PARAMETER
    SUM_PLACES_PARAMETERS
    const int n_atoms,
    const int n_results,                          // Finish, energy/finish.clh
    const real step,                              // length of a coordinate unit [A]
    const coordinate origin_step,                 // Placing, common/place.clh
    const Reaches reaches,
    NECK_PARAMETERS
    RADIUS_PARAMETER,                       // physics/gb_radius.clh
    const real4 solvent,                          // SingleAtoms, energy/terms.clh
    const PairModel model,
#if TERMS_FIRST
    BONDED_PARAMETERS,
#else
    const int n_energies,
    const int per_atom,
#endif
    global const coordinate *restrict positions,  // (n_atoms, 3)
    // Constants of the molecule; see the structs of each step.
    global const int *restrict order,
    global const int *restrict counts,
    global const real *restrict largest_s,
    global const real *restrict s,
    global const real *restrict rho,
    global const real *restrict charges,
    global const real *restrict sigmas,
    global const real *restrict epsilons,
    global const real4 *restrict coefficients,
    global const real *restrict columns,
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
    global real *born_sums,                       // (n_parts, slots of common/runs.clh)
    global real4 *traits,
    global real4 *singles,
    global real *born,
    global real *largest_born,
    global real *pair_sums,                       // (n_parts, PAIR_SUMS, slots of common/runs.clh)
    global real *weights,
    global real *results,
    volatile global int *counters)                // (COUNTERS, COUNTER_STEP) 0
{
    const int n_lots = (n_tiles + per_lot - 1) / per_lot, slots = n_tiles * TILE;
    const Parts parts = PARTS_GIVEN;
    const SumPlaces places_of_sums = SUM_PLACES_GIVEN;
    const int of_column = tiles_of_sums(&parts) * TILE, of_part = PAIR_SUMS * of_column;
    const Blocks blocks = {parts, n_tiles, x, y, z, origins, extents, counts};
    const Placing placing = {
        n_tiles, n_atoms, step, origin_step, positions, order, largest_s, s, charges, coefficients, spheres, points, x, y, z,
        series, origins, extents};
    const BornBlocks born_blocks = {
        blocks, 0, n_tiles, reaches, NECKS_GIVEN, spheres, s, rho, series, columns, born_sums};
    const SingleAtoms atoms = {radius_constants, solvent, parameters, traits, singles, born, largest_born};
    const PairBlocks pairs = {
        blocks, model, points, traits, born, charges, sigmas, epsilons, largest_born, special_starts, specials, masks, pair_sums};
#if CHAIN
    const ChainBlocks chain = {
        blocks, reaches, NECKS_GIVEN, spheres, weights, s, rho, slopes, slope_columns, pair_sums};
#endif
    const Finish finish = {
        parts, places_of_sums, n_atoms, n_energies, n_results, per_atom, pair_sums, counts, singles, born, order, results};
#if TERMS_FIRST
    const Bonded bonded = {
        n_atoms, n_results, n_energies, first_energy, n_terms, per_atom, n_slots, step, cutoff2, positions, kind_starts, members,
        places, details, constants, slot_starts, all_slots, results};
    local BondedMemory memory;
    const int n_bonded = bonded_groups(n_atoms);
#else
    const int n_bonded = 0;
#endif
    // First ticket of each step.
    const int with_born = n_lots, with_bonded = with_born + n_parts, with_radii = with_bonded + n_bonded;
    const int with_pairs = with_radii + n_lots, with_weights = with_pairs + n_parts;
    const int with_chain = with_weights + (CHAIN ? n_lots : 0), to_finish = with_chain + (CHAIN ? n_parts : 0);
    const int n_tickets = to_finish + n_lots;
    for (int ticket = draw_ticket(COUNTER(DRAWN)); ticket < n_tickets; ticket = draw_ticket(COUNTER(DRAWN))) {
        // For steps over batches of tiles: the tiles of this batch.
        const int lot = ticket < with_born ? ticket : ticket < with_pairs ? ticket - with_radii
                      : ticket < with_chain ? ticket - with_weights : ticket - to_finish;
        const int first = lot * per_lot, end = min(first + per_lot, n_tiles);
        if (ticket < with_born) {
            for (int tile = first; tile < end; ++tile) {
                coordinate lowest[3], highest[3];
                bound_tile(tile, lowest, highest, &placing);
                for (int i = tile * TILE; i < (tile + 1) * TILE; ++i) place_slot(i, lowest, highest, &placing);
            }
            publish(counters, PLACED_TILES, end - first, n_tiles);
        } else if (ticket < with_bonded) {
            WAIT_FOR(PLACED_TILES);
            add_born_part(ticket - with_born, &born_blocks);
            publish(counters, BORN_PARTS, 1, n_parts);
        } else if (ticket < with_radii) {
#if TERMS_FIRST
            add_bonded(ticket - with_bonded, 0, &memory, &bonded);
            publish(counters, BONDED_GROUPS, 1, n_bonded);
#endif
        } else if (ticket < with_pairs) {
            WAIT_FOR(BORN_PARTS);
            for (int tile = first; tile < end; ++tile) {
                realv totals[VECTORS];
                real largest = 0;
                add_parts_of_tile(totals, &parts, &places_of_sums, born_sums, of_column, 1, VECTORS, tile, 0);
                const real *integrals = (const real *)totals;
                for (int j = 0; j < TILE; ++j) {
                    const int i = tile * TILE + j;
                    largest = fmax(largest, keep_terms(i, i, slots, integrals[j], &atoms));
                }
                largest_born[tile] = largest;
            }
            publish(counters, TILES_WITH_RADII, end - first, n_tiles);
        } else if (ticket < with_weights) {
            WAIT_FOR(TILES_WITH_RADII);
            add_pair_part(ticket - with_pairs, &pairs);
            publish(counters, PAIR_PARTS, 1, n_parts);
        } else if (ticket < with_chain) {
#if CHAIN
            WAIT_FOR(PAIR_PARTS);
            for (int tile = first; tile < end; ++tile) {
                realv totals[VECTORS];
                add_parts_of_tile(
                    totals, &parts, &places_of_sums, pair_sums + RADIUS_SUM * of_column, of_part, 1, VECTORS, tile, 0);
                const real *sums = (const real *)totals;
                for (int j = 0; j < TILE; ++j) {
                    const int i = tile * TILE + j;
                    weights[i] = j < counts[tile] ? weight_of(sums[j], born[i], singles[i]) : (real)0;
                }
            }
            publish(counters, TILES_WITH_WEIGHTS, end - first, n_tiles);
        } else if (ticket < to_finish) {
            WAIT_FOR(TILES_WITH_WEIGHTS);
            add_chain_part(ticket - with_chain, &chain);
            publish(counters, CHAIN_PARTS, 1, n_parts);
#endif
        } else {
            WAIT_FOR(CHAIN ? CHAIN_PARTS : PAIR_PARTS);
            if (n_bonded > 0) WAIT_FOR(BONDED_GROUPS);
            const Results own = results_to_finish(&finish);
            for (int tile = first; tile < end; ++tile) {
                realv totals[FINISHED_SUMS * VECTORS];
                add_parts_of_tile(totals, &parts, &places_of_sums, pair_sums, of_part, FINISHED_SUMS, VECTORS, tile, 0);
                const real *sums = (const real *)totals;
                real energies[N_TERMS] = {0, 0, 0, 0, 0};
                for (int j = 0; j < counts[tile]; ++j) {
                    real of_slot[FINISHED_SUMS], terms[N_TERMS];
                    for (int k = 0; k < FINISHED_SUMS; ++k) of_slot[k] = sums[k * TILE + j];
                    finish_slot(tile * TILE + j, of_slot, terms, &finish);
                    for (int k = 0; k < N_TERMS; ++k) energies[k] += terms[k];
                }
                if (!per_atom) for (int k = 0; k < N_TERMS; ++k) own.energies[N_TERMS * tile + k] = energies[k];
            }
        }
    }
    // The last group to leave resets the counters.
    if (atomic_inc(COUNTER(LEFT)) == n_groups - 1) for (int k = 0; k < COUNTERS; ++k) *COUNTER(k) = 0;
}
