// Values of single atoms, where a launch of its own finds them. A work-group owns a tile of one conformation (third
// dimension), its first share of work-items an atom each.
#include "common/real.clh"
#include "solvent/atoms.clh"

// Born radii from parts of the Born integrals.
kernel __attribute__((reqd_work_group_size(TILE, SHARES, 1)))
void radii_of_sums(
    const int n_tiles,
    const int n_atoms,
    const int n_parts,
    RADIUS_PARAMETER,                // physics/gb_radius.clh
    const real4 solvent,                   // of keep_atom
    global const real *restrict sums,      // (n_conformations, n_parts, n_slots) parts of the Born integral [1/A]
    global const real *restrict rho,       // (n_slots) offset radius [A]
    global const real *restrict radii,     // (n_slots) intrinsic radius [A]
    global const real *restrict charges,   // (n_slots) of keep_atom
    global const int *restrict order,      // (n_slots) the atom of each slot
    global const int *restrict counts,     // (n_tiles) atoms in the tile
    global real *restrict inv_born,        // (n_conformations, n_slots) 1 / Born radius [1/A]
    global real *restrict results)         // (n_conformations, COLUMNS, n_atoms)
{
    local real scratch[2 * SHARES * TILE];
    radius_of_slot(
        get_global_id(0), n_tiles, n_atoms, n_parts, scratch, radius_constants, solvent, sums, rho, radii, charges, order,
        counts, inv_born, results);
}

// Born radii that were computed atom by atom.
kernel __attribute__((reqd_work_group_size(TILE, SHARES, 1)))
void radii_given(
    const int n_tiles,
    const int n_atoms,
    const real4 solvent,                   // of keep_atom
    global const real *restrict psi,       // (n_atoms)
    global const real *restrict born,      // (n_atoms) Born radius [A]
    global const real *restrict radii,     // (n_slots) intrinsic radius [A]
    global const real *restrict charges,   // (n_slots) of keep_atom
    global const int *restrict order,      // (n_slots) the atom of each slot
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
// GB energies of pairs, each shared equally by its atoms, from parts of the potential.
kernel __attribute__((reqd_work_group_size(TILE, SHARES, 1)))
void pair_energies(
    const int n_tiles,
    const int n_atoms,
    const int n_parts,
    global const real *restrict potential, // (n_conformations, n_parts, n_slots) parts of gb_potential
    global const real *restrict charges,   // (n_slots) of keep_atom
    global const int *restrict order,      // (n_slots) the atom of each slot
    global const int *restrict counts,     // (n_tiles) atoms in the tile
    global real *restrict results)         // (n_conformations, COLUMNS, n_atoms)
{
    local real scratch[2 * SHARES * TILE];
    pair_energy_of_slot(get_global_id(0), n_tiles, n_atoms, n_parts, scratch, potential, charges, order, counts, results);
}
#endif
