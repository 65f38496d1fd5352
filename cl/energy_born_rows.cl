// Born radii and energies of single atoms, row by row, for GPUs. Second dimension: none; third: conformations.
#include "real.clh"
#include "born.clh"
#include "tiles.clh"
#include "hct_tiles.clh"
#include "hct_near.clh"
#include "rows.clh"
#include "energy_terms.clh"

// A vector of atoms; series: the square of an atom's distance from its origin, and the coefficients of the far terms.
INLINE realv far_tile_sum(
    realv x, realv y, realv z, global const real4 *spheres, global const real4 *series, int count, const int terms) {
    const realv norm = x * x + y * y + z * z, x2 = (real)-2 * x, y2 = (real)-2 * y, z2 = (real)-2 * z;
    realv sum = 0;
    for (int j = 0; j < count; ++j) {
        const real4 other = spheres[j], b = series[2 * j];
        real4 c = 0;
        if (terms > 3) c = series[2 * j + 1];
        const realv inv_r2 = inverse((norm + b.x) + x2 * other.x + y2 * other.y + z2 * other.z);
        sum += inv_r2 * inv_r2 * SERIES_SUM(inv_r2, terms, b.y, b.z, b.w, c.x, c.y, c.z, c.w);
    }
    return sum;
}

INLINE realv near_tile_sum(
    realv x, realv y, realv z, realv rho, global const real4 *spheres, int count, real largest_rho) {
    realv sum = 0;
    for (int j = 0; j < count; ++j) {
        const real4 other = spheres[j];
        const realv dx = x - other.x, dy = y - other.y, dz = z - other.z;
        sum += near_term(dx * dx + dy * dy + dz * dz, rho, other.w, largest_rho);
    }
    return sum;
}

kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void born_rows(
    const int n_tiles,
    const real largest_rho,                // largest offset radius of all atoms [A]
    const real4 obc,                       // alpha, beta, gamma, offset [A]
    const real4 solvent,                   // solute over solvent dielectric, kappa [1/A], 4 pi tension, probe radius [A]
    global const real4 *restrict spheres,  // (n_conformations, n_places) x, y, z from the tile's origin [A], scaled radius [A]
    global const real *restrict x,         // (n_conformations, n_places) the same x, y, z as columns, for whole vectors
    global const real *restrict y,
    global const real *restrict z,
    global const real4 *restrict series,   // (n_conformations, n_places, 2) x^2 + y^2 + z^2, then coefficients of r^-4, r^-6, ... r^-16
    global const real4 *restrict origins,  // (n_conformations, n_tiles) origin [A]; w = largest scaled radius [A]
    global const real4 *restrict extents,  // (n_conformations, n_tiles) half edges of the box around the origin [A]
    global const int *restrict counts,     // (n_tiles) atoms in the tile
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
    local real scratch[PARTS * TILE], integrals[TILE];
    const int item = get_local_id(0), part = item / ITEMS, row = get_group_id(0), conformation = get_global_id(2);
    const int n_places = n_tiles * TILE, first = row * TILE + item % ITEMS * WIDTH;
    const size_t at = (size_t)conformation * n_places, box = (size_t)conformation * n_tiles;
    const real4 origin = origins[box + row], extent = extents[box + row];
    const realv own_x = LOAD(at + first, x), own_y = LOAD(at + first, y), own_z = LOAD(at + first, z);
    const realv own_rho = LOAD(first, rho);
    realv total = 0;
    for (int tile = part; tile < n_tiles; tile += PARTS) {
        const real4 other_origin = origins[box + tile], shift = origin - other_origin, other_extent = extents[box + tile];
        const realv px = own_x + shift.x, py = own_y + shift.y, pz = own_z + shift.z;
        const real s = other_origin.w, s_square = s * s, gap2 = box_gap2(shift, extent, other_extent);
        global const real4 *tile_spheres = spheres + at + tile * TILE, *tile_series = series + 2 * (at + tile * TILE);
#define FAR_TILE_SUM(terms) far_tile_sum(px, py, pz, tile_spheres, tile_series, counts[tile], terms)
        // Summing tile by tile keeps the runs short, so that float32 keeps its digits.
        if (gap2 <= least_far_gap2(s, largest_rho, other_extent))
            total += near_tile_sum(px, py, pz, own_rho, tile_spheres, counts[tile], largest_rho);
        else if (gap2 > (real)(FAR_C * FAR_C) * s_square) total += FAR_TILE_SUM(TERMS_C);
        else if (gap2 > (real)(FAR_B * FAR_B) * s_square) total += FAR_TILE_SUM(TERMS_B);
        else total += FAR_TILE_SUM(TERMS_A);
#undef FAR_TILE_SUM
    }
    add_parts(total, scratch, integrals);
    for (int k = item; k < TILE; k += GROUP) {
        const int i = row * TILE + k;
        const Terms terms = terms_of(integrals[k], rho[i], radii[i], charges[i], obc, solvent);
        radius_slopes[at + i] = terms.radius_slope;
        energies[at + i] = (real2)(terms.gb_self, terms.nonpolar);
        energy_slopes[at + i] = terms.energy_slope;
        born[at + i] = terms.born;
        traits[at + i] = (real4)(terms.born, (real)1 / terms.born, wells[i].x, wells[i].y);
        integrals[k] = terms.born;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item == 0) {
        real largest = 0;
        for (int k = 0; k < TILE; ++k) largest = fmax(largest, integrals[k]);
        largest_born[box + row] = largest;
    }
}
