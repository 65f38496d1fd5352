// Pairs of atoms with individual dielectric constants: the difference of their Coulomb and GB energies from those of
// the pair passes, which use one constant for all; eq. 3 of docs/theory/sgb.md. Such atoms are called special, and are
// few. Both kernels run after all other passes and add to their gradient. Born radii are kept constant.
#include "common/real.clh"
#include "engine/arguments.clh"
#include "common/tiles.clh"
#include "energy/results.clh"
#include "physics/coulomb.clh"
#include "physics/gb_still.clh"

#ifndef TILE
#error "TILE: atoms in a tile, a multiple of WIDTH"
#endif
#ifndef ITEMS
#error "ITEMS: work-items of a group"
#endif

#define PARTS 5  // sums per atom

typedef struct { realv parts[PARTS]; } Corrections;  // Coulomb and GB energy [kcal/mol], gradient [kcal/mol/A]

// Parameters of both kernels.
#define DIELECTRIC_PARAMETERS \
    const int n_tiles, \
    const int n_atoms, \
    const int n_special, \
    const int n_energies,                   /* energies that precede the Born radii in the results, per atom or per tile */ \
    const int n_results,                    /* reals per conformation in the results */ \
    const int coulomb_term,                 /* index in `further` of each term, -1 if it is not included */ \
    const int scaled_term, \
    const int gb_term, \
    const real cutoff2,                     /* [A^2] */ \
    global const real4 *restrict points,    /* (n_conformations, n_slots) x, y, z from the tile's origin [A], charge */ \
    global const real *restrict x,          /* the same as columns */ \
    global const real *restrict y, \
    global const real *restrict z, \
    global const real4 *restrict origins,   /* (n_conformations, n_tiles) [A] */ \
    global const real *restrict born,       /* (n_conformations, n_slots) [A] */ \
    global const int *restrict order,       /* (n_slots) atom of each slot, -1 at unused ones */ \
    global const int *restrict special,     /* (n_special) slots of the special atoms, ascending */ \
    global const real *restrict inverses,   /* (n_slots) 1/eps */ \
    global real *restrict results           /* energy/results.clh */

// Adds pairs separated by these vectors [A]. charges: their products times 1/eps - 1; product: of Born radii. For an
// atom with itself and for unused slots, charges are 0.
INLINE void add_pairs(
    Corrections *sum, realv dx, realv dy, realv dz, realv charges, realv product, real cutoff2, bool has_coulomb,
    bool has_gb) {
    const maskv nothing = charges == (realv)0;
    const realv r2 = CHOOSE(dx * dx + dy * dy + dz * dz, (real)1, nothing);
    const realv counted = CHOOSE((real)0, charges, r2 <= (realv)cutoff2);
    const realv inv_r = inverse_sqrt(r2), coulomb = has_coulomb ? coulomb_energy(counted, inv_r) : (realv)0;
    realv pull = coulomb * inv_r * inv_r;
    if (has_gb) {
        const realv radii2 = CHOOSE(product, (real)1, nothing);
        const realv gauss = still_gauss(r2, GAUSS_EXPONENT * inverse(radii2));
        const realv inv_f = still_inverse_f(r2, radii2, gauss), energy = -counted * inv_f;
        sum->parts[1] += energy;
        pull -= still_slope(-energy * inv_f * inv_f, gauss);
    }
    sum->parts[0] += coulomb;
    sum->parts[2] += pull * dx;
    sum->parts[3] += pull * dy;
    sum->parts[4] += pull * dz;
}

// Pairs of all atoms with special atoms. One work-item per vector of slots.
kernel void correct_all(
    DIELECTRIC_PARAMETERS,
    global const real *restrict charges,    // (n_slots) as used by the passes
    global const int *restrict starts,      // (n_atoms + 1) index of each atom's first `partners`
    global const int *restrict partners,    // slots excluded from its Coulomb energy in the passes, in both directions
    global const real *restrict scaled)     // product of charges of the 1-4 pair times Coulomb's constant, 0 for other pairs
{
    SERVES_ROWS(correct_all)
    const int first = get_global_id(0) * WIDTH, conformation = get_global_id(2), n_slots = n_tiles * TILE;
    if (first >= n_slots) return;
    const size_t at = (size_t)conformation * n_slots, box = (size_t)conformation * n_tiles;
    const Results own = results_of(results, conformation, n_results, n_energies, n_atoms);
    const realv own_x = LOAD(first, x + at), own_y = LOAD(first, y + at), own_z = LOAD(first, z + at);
    const realv radii = LOAD(first, born + at), own_charges = LOAD(first, charges), own_inverses = LOAD(first, inverses);
    const real4 origin = origins[box + first / TILE];
    Corrections sum = {{0, 0, 0, 0, 0}};
    for (int k = 0; k < n_special; ++k) {
        const int j = special[k];
        const real4 point = points[at + j], shift = origins[box + j / TILE] - origin;
        realv products = own_charges * point.w * (fmin(own_inverses, (realv)inverses[j]) - (real)1);
        if (j / WIDTH == first / WIDTH) {
            real each[WIDTH];
            STORE(products, 0, each);
            each[j % WIDTH] = 0;
            products = LOAD(0, each);
        }
        add_pairs(
            &sum, point.x + shift.x - own_x, point.y + shift.y - own_y, point.z + shift.z - own_z, products,
            radii * born[at + j], cutoff2, coulomb_term >= 0, gb_term >= 0);
    }
    real whole[PARTS * WIDTH];
    for (int c = 0; c < PARTS; ++c) STORE(sum.parts[c], c * WIDTH, whole);
    for (int lane = 0; lane < WIDTH; ++lane) {
        const int slot = first + lane, i = order[slot];
        if (i < 0) continue;
        real coulomb = whole[lane], quarter = 0, gradient[3];
        for (int axis = 0; axis < 3; ++axis) gradient[axis] = whole[(2 + axis) * WIDTH + lane];
        for (int k = starts[i]; k < starts[i + 1]; ++k) {
            const int j = partners[k];
            const real4 d = points[at + j] - points[at + slot] + origins[box + j / TILE] - origin;
            const real r2 = d.x * d.x + d.y * d.y + d.z * d.z;
            if (r2 > cutoff2) continue;
            const real inv_r = (real)1 / sqrt(r2), share = fmin(inverses[slot], inverses[j]) - (real)1;
            const real passed = coulomb_term < 0 ? (real)0 : charges[slot] * charges[j] * share * inv_r;
            const real part = scaled_term < 0 ? (real)0 : scaled[k] * share * inv_r;
            const real pull = (part - passed) * inv_r * inv_r;
            coulomb -= passed;
            quarter += part;
            gradient[0] += pull * d.x;
            gradient[1] += pull * d.y;
            gradient[2] += pull * d.z;
        }
#if GRADIENT
        for (int axis = 0; axis < 3; ++axis) own.gradient[3 * (size_t)i + axis] += gradient[axis];
#endif
        if (coulomb_term >= 0) own.further[(size_t)coulomb_term * n_atoms + i] = coulomb / 2;
        if (scaled_term >= 0) own.further[(size_t)scaled_term * n_atoms + i] = quarter / 2;
        if (gb_term >= 0) own.further[(size_t)gb_term * n_atoms + i] = whole[WIDTH + lane] / 2;
    }
}

// Pairs of special atoms with all others. One work-group per special atom; its work-items share the pairs.
kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void correct_special(
    DIELECTRIC_PARAMETERS,
    global const real *restrict others)     // (n_slots) charges, 0 for special atoms and unused slots
{
    SERVES_ROWS(correct_special)
    local real each[PARTS * ITEMS];
    const int item = get_local_id(0), slot = special[get_group_id(0)], conformation = get_global_id(2);
    const int n_slots = n_tiles * TILE;
    const size_t at = (size_t)conformation * n_slots, box = (size_t)conformation * n_tiles;
    const real4 point = points[at + slot], origin = origins[box + slot / TILE];
    const real charge = point.w * (inverses[slot] - (real)1), radius = born[at + slot];
    Corrections sum = {{0, 0, 0, 0, 0}};
    for (int j = item * WIDTH; j < n_slots; j += ITEMS * WIDTH) {
        const real4 shift = origins[box + j / TILE] - origin - point;
        add_pairs(
            &sum, LOAD(j, x + at) + shift.x, LOAD(j, y + at) + shift.y, LOAD(j, z + at) + shift.z,
            charge * LOAD(j, others), radius * LOAD(j, born + at), cutoff2, coulomb_term >= 0, gb_term >= 0);
    }
    for (int c = 0; c < PARTS; ++c) each[c * ITEMS + item] = lane_sum(sum.parts[c]);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item > 0) return;
    const Results own = results_of(results, conformation, n_results, n_energies, n_atoms);
    const int i = order[slot];
    real whole[PARTS];
    for (int c = 0; c < PARTS; ++c) {
        whole[c] = 0;
        for (int k = 0; k < ITEMS; ++k) whole[c] += each[c * ITEMS + k];
    }
#if GRADIENT
    for (int axis = 0; axis < 3; ++axis) own.gradient[3 * (size_t)i + axis] += whole[2 + axis];
#endif
    if (coulomb_term >= 0) own.further[(size_t)coulomb_term * n_atoms + i] += whole[0] / 2;
    if (gb_term >= 0) own.further[(size_t)gb_term * n_atoms + i] += whole[1] / 2;
}
