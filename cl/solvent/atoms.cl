// Per-atom values, as separate launches. One work-group per tile of a conformation (third dimension); the first share
// of its work-items has one atom each.
#include "common/real.clh"
#include "solvent/atoms.clh"

// Born radii from partial Born integrals.
kernel __attribute__((reqd_work_group_size(TILE, SHARES, 1)))
void radii_of_sums(
    const int n_tiles,
    const int n_atoms,
    const int n_parts,
    RADIUS_PARAMETER,                // physics/gb_radius.clh
    const real4 solvent,                   // see keep_atom
    global const real *restrict sums,      // (n_conformations, n_parts, n_slots) partial Born integrals [1/A]
    global const real *restrict rho,       // (n_slots) offset radius [A]
    global const real *restrict radii,     // (n_slots) intrinsic radius [A]
    global const real *restrict charges,   // (n_slots) see keep_atom
    global const int *restrict order,      // (n_slots) atom of each slot
    global const int *restrict counts,     // (n_tiles) atoms in the tile
    global real *restrict inv_born,        // (n_conformations, n_slots) 1 / Born radius [1/A]
    global real *restrict results)         // (n_conformations, COLUMNS, n_atoms)
{
    local real scratch[2 * SHARES * TILE];
    radius_of_slot(
        get_global_id(0), n_tiles, n_atoms, n_parts, scratch, radius_constants, solvent, sums, rho, radii, charges, order,
        counts, inv_born, results);
}

// Results for Born radii that were computed per atom.
kernel __attribute__((reqd_work_group_size(TILE, SHARES, 1)))
void radii_given(
    const int n_tiles,
    const int n_atoms,
    const real4 solvent,                   // see keep_atom
    global const real *restrict psi,       // (n_atoms)
    global const real *restrict born,      // (n_atoms) Born radius [A]
    global const real *restrict radii,     // (n_slots) intrinsic radius [A]
    global const real *restrict charges,   // (n_slots) see keep_atom
    global const int *restrict order,      // (n_slots) atom of each slot
    global const int *restrict counts,     // (n_tiles) atoms in the tile
    global real *restrict inv_born,        // (n_slots) 1 / Born radius [1/A]
    global real *restrict results)         // (COLUMNS, n_atoms)
{
    const int i = get_global_id(0), atom = order[i];
    if (get_local_id(1)) return;
    inv_born[i] = (real)1 / born[atom];
    if (get_local_id(0) < counts[i / TILE])
        keep_atom(results, n_atoms, atom, psi[atom], born[atom], radii[i], charges[i], solvent);
}

#if ENERGIES
// GB energies of pairs, shared equally by both atoms, from partial potentials.
kernel __attribute__((reqd_work_group_size(TILE, SHARES, 1)))
void pair_energies(
    const int n_tiles,
    const int n_atoms,
    const int n_parts,
    global const real *restrict potential, // (n_conformations, n_parts, n_slots) partial sums of gb_potential
    global const real *restrict charges,   // (n_slots) see keep_atom
    global const int *restrict order,      // (n_slots) atom of each slot
    global const int *restrict counts,     // (n_tiles) atoms in the tile
    global real *restrict results)         // (n_conformations, COLUMNS, n_atoms)
{
    local real scratch[2 * SHARES * TILE];
    pair_energy_of_slot(get_global_id(0), n_tiles, n_atoms, n_parts, scratch, potential, charges, order, counts, results);
}
#endif
