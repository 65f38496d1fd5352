// From sums over pairs to values of single atoms, between the passes of the energy. A work-group owns a tile of one
// conformation, SHARES work-items a place.
#include "real.clh"
#include "born.clh"
#include "energy_sums.clh"
#include "energy_terms.clh"
#include "shares.clh"

#ifndef RECOIL
#error "RECOIL: 1 where the pair pass went by squares, else 0"
#endif
#if RECOIL
#include "squares.clh"
#endif

// Born radii and what goes with them.
kernel __attribute__((reqd_work_group_size(TILE, SHARES, 1)))
void atom_terms(
    const int n_tiles,
    const int n_parts,
    const real4 obc,                       // alpha, beta, gamma, offset [A]
    const real4 solvent,                   // solute over solvent dielectric, kappa [1/A], 4 pi tension, probe radius [A]
    global const real *restrict sums,      // (n_conformations, n_parts, n_places) parts of the Born integral [1/A]
    ATOM_ARGUMENTS)
{
    local real largest[TILE], scratch[SHARES * TILE];
    const int item = get_local_id(0), i = get_global_id(0), conformation = get_global_id(2);
    const int n_places = n_tiles * TILE;
    const size_t at = (size_t)conformation * n_places + i;
    global const real *parts = sums + (size_t)conformation * n_parts * n_places + i;
    const real integral = add_shares(share_of_parts(parts, n_parts, n_places), scratch);
    if (get_local_id(1) == 0) {
        const Terms terms = terms_of(integral, rho[i], radii[i], charges[i], obc, solvent);
        radius_slopes[at] = terms.radius_slope;
        energies[at] = (real2)(terms.gb_self, terms.nonpolar);
        energy_slopes[at] = terms.energy_slope;
        born[at] = terms.born;
        traits[at] = (real4)(terms.born, (real)1 / terms.born, wells[i].x, wells[i].y);
        largest[item] = terms.born;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item == 0 && get_local_id(1) == 0) {
        real whole = 0;
        for (int k = 0; k < TILE; ++k) whole = fmax(whole, largest[k]);
        largest_born[(size_t)conformation * n_tiles + i / TILE] = whole;
    }
}

// The weights of the chain rule.
kernel __attribute__((reqd_work_group_size(TILE, SHARES, 1)))
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
    local real scratch[SHARES * TILE];
    real sum = share_of_parts(parts, n_parts, (size_t)PAIR_SUMS * n_places);
#if RECOIL
    sum += share_of_recoil(recoil, conformation, i, n_tiles).w;
#endif
    sum = add_shares(sum, scratch);
    if (get_local_id(1) > 0) return;
    const bool used = i % TILE < counts[i / TILE];
    weights[at] = used ? weight_of(sum, born[at], radius_slopes[at], energy_slopes[at]) : (real)0;
}
