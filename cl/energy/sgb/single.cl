// Per-atom energies of the SGB models, instead of those of cl/energy/radii.cl. GB self energies use a dielectric
// constant per atom; nonpolar ones follow eqs. 3 and 4 of docs/theory/sgb.md. One work-item per slot.
#include "common/real.clh"
#include "engine/arguments.clh"
#include "physics/gb_self.clh"
#include "physics/nonpolar_sgb.clh"

#ifndef TILE
#error "TILE: atoms in a tile, the size of a work-group"
#endif

kernel void sgb_single(
    const int n_tiles,
    const int has_self,                         // 1 if GB self energies are included
    const int has_nonpolar,                     // 1 if nonpolar energies are included
    const real outside,                         // solute over solvent dielectric
    const real kappa,                           // [1/A]
    global const real *restrict charges,        // (n_slots) times the square root of Coulomb's constant over the solute dielectric
    global const real *restrict inverses,       // (n_slots) 1/eps of each atom
    global const real4 *restrict parameters,    // (n_slots) radii of the two surfaces, gamma, alpha
    global const real *restrict areas,          // (n_conformations, n_slots) [A^2]
    global const real *restrict born,           // (n_conformations, n_slots) [A]
    global real4 *restrict singles)             // (n_conformations, n_slots) cl/energy/terms.clh
{
    SERVES_ROWS(sgb_single)
    const int i = get_global_id(0), conformation = get_global_id(2), n_slots = n_tiles * TILE;
    const size_t at = (size_t)conformation * n_slots + i;
    const real charge = charges[i], radius = born[at];
    const real4 of = parameters[i];
    real slope;
    real4 single = singles[at];
    const real half_square = (real)0.5 * charge * charge;
    single.z = has_self ? gb_self_energy(half_square, radius, outside, kappa, &slope)
                              + half_square * ((real)1 - inverses[i]) / radius
                        : (real)0;
    single.w = has_nonpolar ? nonpolar_sgb(of.z, areas[at], of.w, radius) : (real)0;
    singles[at] = single;
}
