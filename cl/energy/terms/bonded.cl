// Bonded terms and 1-4 pairs as a launch of their own: on CPUs after the passes, on GPUs first (TERMS_FIRST). If it is
// first, it also places the tiles: its later groups bring positions to them.
#include "common/real.clh"
#include "engine/arguments.clh"
#include "energy/terms/bonded.clh"
#if TERMS_FIRST
#include "common/place.clh"
#endif

#if TERMS_FIRST
// Places a slot, by a work-item that looks at all atoms of the tile by itself: no barrier, which not every group would
// come to.
INLINE void place_alone(
    int i, int n_tiles, int n_atoms, real step, global const coordinate *positions, PLACE_ARGUMENTS()) {
    coordinate lowest[3], highest[3];
    bound_tile(i / TILE, n_atoms, positions, order, lowest, highest);
    place_slot(i, n_tiles, n_atoms, step, positions, lowest, highest, PLACED);
}

#define TILES_PLACED const int n_tiles, PLACE_ARGUMENTS(restrict),
#else
#define TILES_PLACED
#endif

kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void bonded_terms(
    const int n_atoms,
    const int n_results,                          // reals of a conformation in the results
    const real step,                              // A of a coordinate's unit
    global const coordinate *restrict positions,  // (n_conformations, n_atoms, 3)
    global real *restrict results,                // energy/results.clh
    TILES_PLACED
    BONDED_ARGUMENTS(restrict))
{
    SERVES_ROWS(bonded_terms)
    local BondedMemory memory;
    const int item = get_local_id(0), group = get_group_id(0);
#if TERMS_FIRST
    if (group >= bonded_groups(n_atoms)) {
        const int i = (group - bonded_groups(n_atoms)) * ITEMS + item;
        if (i < n_tiles * TILE) place_alone(i, n_tiles, n_atoms, step, positions, PLACED);
    }
#endif
    add_bonded(group, item, &memory, n_atoms, n_results, step, positions, results, BONDED_PASSED);
}
