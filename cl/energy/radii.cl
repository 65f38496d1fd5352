// Per-atom values from sums over pairs, between the passes of the energy, if no pass computes them itself. One
// work-group per tile and conformation.
#include "common/real.clh"
#include "engine/arguments.clh"
#include "common/runs.clh"
#include "energy/sums.clh"
#include "energy/terms.clh"

#ifndef TILE
#error "TILE: atoms in a tile, a power of two; also the size of a work-group in its first dimension"
#endif
#ifndef SHARES
#error "SHARES: work-items that add up the parts of one atom, the second dimension of a work-group"
#endif

// Born radii and the quantities that depend on them.
kernel __attribute__((reqd_work_group_size(TILE, SHARES, 1)))
void atom_terms(
    const int n_tiles,
    const int n_parts,
    RUNS_PARAMETER
    SUM_PLACES_PARAMETERS
    RADIUS_PARAMETER,                // physics/gb_radius.clh
    const real4 solvent,                   // solute over solvent dielectric, kappa [1/A], 4 pi tension, probe radius [A]
    global const real *restrict sums,      // (n_conformations, n_parts, slots of common/runs.clh) Born integral [1/A]
    global const real *restrict parameters, // SingleAtoms, energy/terms.clh
    global real4 *restrict traits,
    global real4 *restrict singles,
    global real *restrict born,
    global real *restrict largest_born)
{
    SERVES_ROWS(atom_terms)
    local real scratch[SHARES * TILE];
    const int item = get_local_id(0), share = get_local_id(1), i = get_global_id(0), conformation = get_global_id(2);
    const int n_slots = n_tiles * TILE;
    const size_t at = (size_t)conformation * n_slots + i;
    const Parts of_sums = PARTS_GIVEN;
    const SingleAtoms atoms = {radius_constants, solvent, parameters, traits, singles, born, largest_born};
    const int of_part = tiles_of_sums(&of_sums) * TILE;
    global const real *parts = sums + (size_t)conformation * n_parts * of_part;
#if RUNS
    const SumPlaces places = SUM_PLACES_GIVEN;
    real sum;
    add_parts_of_tile(&sum, &of_sums, &places, parts, of_part, 1, 1, i / TILE, item);
    scratch[item] = sum;
#else
    scratch[share * TILE + item] = sum_of_parts(parts + i, share, n_parts, SHARES, of_part);
#endif
    barrier(CLK_LOCAL_MEM_FENCE);
    if (share == 0) {
        real integral = 0;
        for (int k = 0; k < SHARES; ++k) integral += scratch[k * TILE + item];
        scratch[item] = keep_terms(i, at, n_slots, integral, &atoms);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (share == 0 && item == 0)
        largest_born[(size_t)conformation * n_tiles + i / TILE] = largest_of(scratch, TILE);
}

// Weights of the chain rule.
kernel __attribute__((reqd_work_group_size(TILE, SHARES, 1)))
void chain_weights(
    const int n_tiles,
    const int n_parts,
    RUNS_PARAMETER
    SUM_PLACES_PARAMETERS
    global const real *restrict sums,           // (n_conformations, n_parts, PAIR_SUMS, slots of common/runs.clh) of pairs
    global const real *restrict born,           // (n_conformations, n_slots) [A]
    global const real4 *restrict singles,       // (n_conformations, n_slots) of SingleAtoms
    global const int *restrict counts,          // (n_tiles) atoms in the tile
    global real *restrict weights)              // (n_conformations, n_slots), 0 at unused slots [kcal/mol A]
{
    SERVES_ROWS(chain_weights)
    const int i = get_global_id(0), conformation = get_global_id(2), n_slots = n_tiles * TILE;
    const size_t at = (size_t)conformation * n_slots + i;
    const Parts of_sums = PARTS_GIVEN;
    const int of_column = tiles_of_sums(&of_sums) * TILE;
    global const real *parts = sums + ((size_t)conformation * n_parts * PAIR_SUMS + RADIUS_SUM) * of_column;
#if RUNS
    const SumPlaces places = SUM_PLACES_GIVEN;
    real sum;
    add_parts_of_tile(&sum, &of_sums, &places, parts, (size_t)PAIR_SUMS * of_column, 1, 1, i / TILE, i % TILE);
#else
    const real sum = sum_of_parts(parts + i, 0, n_parts, 1, (size_t)PAIR_SUMS * of_column);
#endif
    const bool used = i % TILE < counts[i / TILE];
    weights[at] = used ? weight_of(sum, born[at], singles[at]) : (real)0;
}
