// Values of single atoms, before and after the GB potential: Born radii and what follows from them, energies of pairs. A
// work-group owns a tile of one conformation (third dimension), its first share of work-items an atom each.
//
// The host reads columns of all atoms in their order: GB self energy, GB pair energy, nonpolar energy [kcal/mol], Born
// radius [A], psi.
#include "common/real.clh"
#include "physics/gb_radius.clh"
#include "physics/gb_self.clh"
#include "physics/nonpolar_ace.clh"

#include "solvent/parts.clh"

enum { SELF_COLUMN, PAIR_COLUMN, NONPOLAR_COLUMN, BORN_COLUMN, PSI_COLUMN, COLUMNS };

INLINE global real *results_of(global real *results, int conformation, int n_atoms) {
    return results + (size_t)conformation * COLUMNS * n_atoms;
}

// Writes what follows from an atom's Born radius. own: the results of its conformation; solvent: solute over solvent
// dielectric, kappa [1/A], 4 pi tension, probe radius [A]; charge: times the root of Coulomb's constant over the solute
// dielectric.
INLINE void keep_atom(
    global real *own, int n_atoms, int atom, real psi, real born, real radius, real charge, real4 solvent) {
    const size_t n = n_atoms;
    real slope;  // of no use here
    own[SELF_COLUMN * n + atom] = gb_self_energy((real)0.5 * charge * charge, born, solvent.x, solvent.y, &slope);
    own[NONPOLAR_COLUMN * n + atom] = nonpolar_energy(radius, born, solvent.z, solvent.w, &slope);
    own[BORN_COLUMN * n + atom] = born;
    own[PSI_COLUMN * n + atom] = psi;
}

// Born radii from parts of the Born integrals.
kernel __attribute__((reqd_work_group_size(TILE, SHARES, 1)))
void radii_of_sums(
    const int n_tiles,
    const int n_atoms,
    const int n_parts,
    RADIUS_CONSTANTS(restrict),            // physics/gb_radius.clh
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
    const int i = get_global_id(0), conformation = get_global_id(2);
    const size_t n_slots = (size_t)n_tiles * TILE;
    const real integral = sum_over_shares(sums + (size_t)conformation * n_parts * n_slots + i, n_parts, n_slots, scratch);
    if (get_local_id(1)) return;
    const real psi = rho[i] * integral, born = born_radius(psi, rho[i], radii[i], CONSTANTS_OF(i));
    inv_born[(size_t)conformation * n_slots + i] = (real)1 / born;
    if (get_local_id(0) < counts[i / TILE])
        keep_atom(results_of(results, conformation, n_atoms), n_atoms, order[i], psi, born, radii[i], charges[i], solvent);
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
    const int i = get_global_id(0), conformation = get_global_id(2);
    const size_t n_slots = (size_t)n_tiles * TILE, n = n_atoms;
    const real sum = sum_over_shares(potential + (size_t)conformation * n_parts * n_slots + i, n_parts, n_slots, scratch);
    if (get_local_id(1) == 0 && get_local_id(0) < counts[i / TILE])
        results_of(results, conformation, n_atoms)[PAIR_COLUMN * n + order[i]] = (real)-0.5 * charges[i] * sum;
}
