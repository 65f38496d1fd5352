// Adds the parts of all passes, and stores them in the order of the atoms. One work-group per tile and conformation.
#include "common/real.clh"
#include "engine/arguments.clh"
#include "energy/finish.clh"

kernel __attribute__((reqd_work_group_size(TILE, 1, 1)))
void finish(
    const int n_tiles,
    global const real *restrict pair_sums,  // (n_conformations, n_parts, PAIR_SUMS, slots of common/runs.clh)
    global const int *restrict counts,      // (n_tiles) atoms in the tile
    FINISH_PARAMETERS)
{
    SERVES_ROWS(finish)
    local real scratch[N_TERMS * TILE];
    const Finish to_finish = {
        PARTS_GIVEN, SUM_PLACES_GIVEN, n_atoms, n_energies, n_results, per_atom, pair_sums, counts, singles, born, order, results};
    finish_tile(get_group_id(0), scratch, &to_finish);
}
