// From sums over pairs to values of single atoms, between the passes of the energy. A work-group owns a tile of one
// conformation, a work-item a place.
#include "real.clh"
#include "born.clh"
#include "energy_sums.clh"

#ifndef RECOIL
#error "RECOIL: 1 where the pair pass went by squares, else 0"
#endif
#if RECOIL
#include "squares.clh"
#endif

#ifndef TILE
#error "TILE: atoms in a tile, a power of two; also the size of a work-group"
#endif

// Born radii with their derivative, energies of single atoms, and their slopes; eqs. 6 and 7 of docs/theory/energy.md.
kernel __attribute__((reqd_work_group_size(TILE, 1, 1)))
void atom_terms(
    const int n_tiles,
    const int n_parts,
    const real4 obc,                       // alpha, beta, gamma, offset [A]
    const real4 solvent,                   // solute over solvent dielectric, kappa [1/A], 4 pi tension, probe radius [A]
    global const real *restrict sums,      // (n_conformations, n_parts, n_places) parts of the Born integral [1/A]
    global const real *restrict rho,       // (n_places) offset radius [A]
    global const real *restrict radii,     // (n_places) intrinsic radius [A]
    global const real *restrict charges,   // (n_places) times the root of Coulomb's constant over the solute dielectric
    global const real2 *restrict wells,    // (n_places) Lennard-Jones: half sigma or its root, sqrt(4 epsilon)
    global real4 *restrict traits,         // (n_conformations, n_places) B, 1 / B, and the well
    global real *restrict born,            // (n_conformations, n_places) Born radius B [A]
    global real *restrict largest_born,    // (n_conformations, n_tiles) of each tile [A]
    global real *restrict radius_slopes,   // (n_conformations, n_places) dB/dI [A^2]
    global real *restrict energy_slopes,   // (n_conformations, n_places) dE/dB of the single atom [kcal/mol/A]
    global real2 *restrict energies)       // (n_conformations, n_places) GB self, nonpolar [kcal/mol]
{
    local real largest[TILE];
    const int item = get_local_id(0), i = get_global_id(0), conformation = get_global_id(2);
    const int n_places = n_tiles * TILE;
    const size_t at = (size_t)conformation * n_places + i;
    global const real *parts = sums + (size_t)conformation * n_parts * n_places + i;
    real integral = 0;
    for (int part = 0; part < n_parts; ++part) integral += parts[(size_t)part * n_places];
    const real psi = rho[i] * integral;
    const real own = born_radius(psi, rho[i], radii[i], obc);

    const real polynomial = psi * (obc.x - psi * (obc.y - psi * obc.z));
    const real not_tanh = (real)2 / (exp((real)2 * polynomial) + (real)1);
    const real polynomial_slope = obc.x - psi * ((real)2 * obc.y - psi * (real)3 * obc.z);
    radius_slopes[at] = own * own * not_tanh * ((real)2 - not_tanh) * polynomial_slope * rho[i] / radii[i];

    const real inv = (real)1 / own;
    const real screened = solvent.x * exp(-solvent.y * own);
    const real charge2 = (real)0.5 * charges[i] * charges[i];
    const real reach = radii[i] + solvent.w, depth = radii[i] * inv, depth3 = depth * depth * depth;
    const real nonpolar = solvent.z * reach * reach * depth3 * depth3;
    energies[at] = (real2)(-charge2 * ((real)1 - screened) * inv, nonpolar);
    energy_slopes[at] = charge2 * inv * (((real)1 - screened) * inv - solvent.y * screened) - (real)6 * nonpolar * inv;

    born[at] = own;
    traits[at] = (real4)(own, inv, wells[i].x, wells[i].y);
    largest[item] = own;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int half_size = TILE / 2; half_size > 0; half_size /= 2) {
        if (item < half_size) largest[item] = fmax(largest[item], largest[item + half_size]);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (item == 0) largest_born[(size_t)conformation * n_tiles + i / TILE] = largest[0];
}

// What a change of an atom's Born integral costs: dE/dI = dE/dB dB/dI, the weights of the chain rule.
kernel __attribute__((reqd_work_group_size(TILE, 1, 1)))
void chain_weights(
    const int n_tiles,
    const int n_parts,
    global const real *restrict sums,           // (n_conformations, n_parts, PAIR_SUMS, n_places) of the pair pass
    global const real *restrict born,           // (n_conformations, n_places) [A]
    global const real *restrict radius_slopes,  // (n_conformations, n_places) dB/dI [A^2]
    global const real *restrict energy_slopes,  // (n_conformations, n_places) dE/dB of the single atom [kcal/mol/A]
    global const int *restrict counts,          // (n_tiles) atoms in the tile
#if RECOIL
    global const real4 *restrict recoil,        // (n_conformations, n_rows / 2, n_places) of the pair pass
#endif
    global real *restrict weights)              // (n_conformations, n_places), 0 at unused places [kcal/mol A]
{
    const int i = get_global_id(0), conformation = get_global_id(2), n_places = n_tiles * TILE;
    const size_t at = (size_t)conformation * n_places + i;
    global const real *parts = sums + ((size_t)conformation * n_parts * PAIR_SUMS + RADIUS_SUM) * n_places + i;
    real sum = 0;
    for (int part = 0; part < n_parts; ++part) sum += parts[(size_t)part * PAIR_SUMS * n_places];
#if RECOIL
    sum += sum_recoil(recoil, conformation, i, n_tiles).w;
#endif
    const bool used = i % TILE < counts[i / TILE];
    weights[at] = used ? ((real)0.5 * sum / born[at] + energy_slopes[at]) * radius_slopes[at] : (real)0;
}
