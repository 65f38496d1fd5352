// Pairs of atoms with a dielectric constant of their own: what their Coulomb and GB energies are more than the pair passes
// gave them, who have one constant for all; eq. 3 of docs/theory/sgb.md. A work-group an atom of one conformation (third
// dimension), whose work-items share its pairs; after all other passes, whose gradient it adds to. Born radii are held.
#include "common/real.clh"
#include "common/vector.clh"
#include "energy/results.clh"
#include "physics/coulomb.clh"
#include "physics/gb_still.clh"

#ifndef ITEMS
#error "ITEMS: work-items of a group"
#endif

#define PARTS 6  // sums of a work-item

typedef struct { real coulomb, scaled, gb, x, y, z; } Corrections;

kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void correct_dielectric(
    const int n_atoms,
    const int n_slots,
    const int n_special,
    const int n_rows,                             // energies before the Born radii in the results, of atoms or tiles
    const int coulomb_term,                       // index in `further` of each term, -1 where it does not count
    const int scaled_term,
    const int gb_term,
    const real step,                              // A of a coordinate's unit
    const real cutoff2,                           // [A^2]
    global const coordinate *restrict positions,  // (n_conformations, n_atoms, 3)
    global const real2 *restrict atoms,           // (n_atoms) charge as the passes have it, 1/eps
    global const int *restrict special,           // (n_special) the atoms of 1/eps below 1, rising
    global const int *restrict slots,             // (n_atoms) slot of each atom
    global const int *restrict starts,            // (n_atoms + 1) first of each atom's `partners`
    global const int *restrict partners,          // atoms with which it has no Coulomb energy in the passes, both ways
    global const real *restrict scaled,           // of each: charges of the 1-4 pair times Coulomb's constant, 0 for none
    global const real *restrict born,             // (n_conformations, n_slots) [A]
    global real *restrict results)                // energy/results.clh
{
    local real parts[PARTS * ITEMS];
    const int item = get_local_id(0), i = get_group_id(0), conformation = get_global_id(2);
    const Results own = results_of(results, conformation, n_rows, n_atoms);
    global const coordinate *all = positions + 3 * (size_t)conformation * n_atoms;
    const size_t at = (size_t)conformation * n_slots;
    const real2 of_own = atoms[i];
    const bool is_special = of_own.y < (real)1;
    const int count = is_special ? n_atoms : n_special;
    Corrections sum = {0, 0, 0, 0, 0, 0};
    for (int k = item; k < count; k += ITEMS) {
        const int j = is_special ? k : special[k];
        if (j == i) continue;
        const Vector d = vector_between(all, i, j, step);
        const real r2 = (real)dot_product(d, d);
        if (r2 > cutoff2) continue;
        const real charges = of_own.x * atoms[j].x * (fmin(of_own.y, atoms[j].y) - (real)1);
        const real inv_r = inverse_sqrt(r2), coulomb = coulomb_term < 0 ? (real)0 : coulomb_energy(charges, inv_r);
        real pull = coulomb * inv_r * inv_r;
        if (gb_term >= 0) {
            const real product = born[at + slots[i]] * born[at + slots[j]];
            const real gauss = still_gauss(r2, GAUSS_EXPONENT * inverse(product));
            const real inv_f = still_inverse_f(r2, product, gauss), energy = -charges * inv_f;
            sum.gb += energy;
            pull -= still_slope(-energy * inv_f * inv_f, gauss);
        }
        sum.coulomb += coulomb;
        sum.x -= pull * (real)d.x;
        sum.y -= pull * (real)d.y;
        sum.z -= pull * (real)d.z;
    }
    for (int k = starts[i] + item; k < starts[i + 1]; k += ITEMS) {
        const int j = partners[k];
        const Vector d = vector_between(all, i, j, step);
        const real r2 = (real)dot_product(d, d);
        if (r2 > cutoff2) continue;
        const real inv_r = inverse_sqrt(r2);
        const real share = fmin(of_own.y, atoms[j].y) - (real)1;
        const real whole = coulomb_term < 0 ? (real)0 : coulomb_energy(of_own.x * atoms[j].x * share, inv_r);
        const real part = scaled_term < 0 ? (real)0 : coulomb_energy(scaled[k] * share, inv_r);
        sum.coulomb -= whole;
        sum.scaled += part;
        const real pull = (part - whole) * inv_r * inv_r;
        sum.x -= pull * (real)d.x;
        sum.y -= pull * (real)d.y;
        sum.z -= pull * (real)d.z;
    }
    const real own_parts[PARTS] = {sum.coulomb, sum.scaled, sum.gb, sum.x, sum.y, sum.z};
    for (int c = 0; c < PARTS; ++c) parts[c * ITEMS + item] = own_parts[c];
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item == 0) {
        real whole[PARTS];
        for (int c = 0; c < PARTS; ++c) {
            whole[c] = 0;
            for (int k = 0; k < ITEMS; ++k) whole[c] += parts[c * ITEMS + k];
        }
#if GRADIENT
        global real *out = own.gradient + 3 * (size_t)i;
        for (int axis = 0; axis < 3; ++axis) out[axis] += whole[3 + axis];
#endif
        if (coulomb_term >= 0) own.further[(size_t)coulomb_term * n_atoms + i] = whole[0] / 2;
        if (scaled_term >= 0) own.further[(size_t)scaled_term * n_atoms + i] = whole[1] / 2;
        if (gb_term >= 0) own.further[(size_t)gb_term * n_atoms + i] = whole[2] / 2;
    }
}
