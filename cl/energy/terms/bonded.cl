// Bonded terms and 1-4 pairs as a separate launch: on CPUs after the passes, on GPUs first (TERMS_FIRST). If it runs
// first, it also places the tiles: later groups copy positions to them.
#include "common/real.clh"
#include "engine/arguments.clh"
#include "energy/terms/bonded.clh"
#if TERMS_FIRST
#include "common/place.clh"
#endif

#if TERMS_FIRST
#define TILES_PLACED const int n_tiles, PLACE_PARAMETERS,
#else
#define TILES_PLACED
#endif

kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void bonded_terms(
    const int n_atoms,
    const int n_results,                          // reals per conformation in the results
    const real step,                              // length of a coordinate unit [A]
    global const coordinate *restrict positions,  // (n_conformations, n_atoms, 3)
    global real *restrict results,                // energy/results.clh
    TILES_PLACED
    BONDED_PARAMETERS)
{
    SERVES_ROWS(bonded_terms)
    local BondedMemory memory;
    const int item = get_local_id(0), group = get_group_id(0);
#if TERMS_FIRST
    if (group >= bonded_groups(n_atoms)) {
        // Each work-item loops over all atoms of the tile itself: no barrier, since not all groups would reach it.
        const int i = (group - bonded_groups(n_atoms)) * ITEMS + item;
        const Placing placing = {
            n_tiles, n_atoms, step, origin_step, positions, order, largest_s, s, charges, coefficients, spheres, points, x, y, z,
            series, origins, extents};
        if (i < n_tiles * TILE) {
            coordinate lowest[3], highest[3];
            bound_tile(i / TILE, lowest, highest, &placing);
            place_slot(i, lowest, highest, &placing);
        }
    }
#endif
    const Bonded bonded = {
        n_atoms, n_results, n_energies, first_energy, n_terms, per_atom, n_slots, step, cutoff2, positions, kind_starts, members,
        places, details, constants, slot_starts, all_slots, results};
    add_bonded(group, item, &memory, &bonded);
}
