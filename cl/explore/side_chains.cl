// Side chains of explorers from rotamers: docs/theory/side-chains.md. One work-item per candidate of a slot of a row,
// or per slot or row. Rows are explorers. Their slots are the predicted side chains, each row in its own order.
// Candidates are rotations relative to the initial positions of the atoms.
//
//   spread    atoms as columns, without the predicted side chains
//   screen    smallest distance of a candidate from the fixed atoms
//   survive   candidates without clashes
//   settled   energy of a candidate with the fixed atoms, computed once
//   met       its energy with the current side chains of other slots
//   choose    the lowest candidate of the group with the largest weight
//   settle    positions of the rows
#include "common/real.clh"
#include "engine/rows.clh"
#include "explore/turn.clh"
#include "physics/coulomb.clh"
#include "physics/gb_still.clh"
#include "physics/lennard_jones.clh"
#include "physics/torsion.clh"
#include "shared/pair_model"
#include "shared/side_chain"
#include "shared/side_chain_sizes"

#ifndef MOST_MOVED
#error "MOST_MOVED: atoms of the largest side chain"
#endif
#ifndef HAS_GB
#error "HAS_GB: 1 with Born radii, 0 in vacuum"
#endif

#define NEAREST2 (real)0.01  // lower bound of squared distances [A^2]
#define MOST_CHI 4
#define POLAR_STEP (real)0.17453292519943295
#define FAR (real)1e30
#define NO_CANDIDATE (-1)

enum { X, Y, Z, BORN, CHARGE, SIGMA, WELL, INVERSE_EPS, WEIGHT, COLUMNS };
enum { PAIR_CHARGES, PAIR_SIGMA, PAIR_WELL, PAIR_SCREENED, PAIR_COLUMNS };

// Tables of the molecule, shared by all rows.
#define CHAINS(RESTRICT) \
    const PairModel model, \
    const int n_columns,                    /* atoms of a row, padded to whole blocks */ \
    global const SideChain *RESTRICT chains,  /* by number */ \
    global const int *RESTRICT moved,       /* atoms of each chain */ \
    global const int *RESTRICT turned,      /* bit mask of the bonds that rotate each of them */ \
    global const int2 *RESTRICT axes,       /* atoms of the rotatable bonds of each chain */ \
    global const real4 *RESTRICT traits,    /* (n_atoms) charge, sigma, well, 1/eps */ \
    global const int *RESTRICT near,        /* blocks of SIDE_CHAIN_BLOCK atoms with special pairs, ascending */ \
    global const real *RESTRICT near_pairs, /* (blocks, moved, PAIR_COLUMNS, SIDE_CHAIN_BLOCK) */ \
    global const real4 *RESTRICT inner,     /* (moved, moved) PAIR_CHARGES to PAIR_WELL */ \
    global const int4 *RESTRICT members,    /* atoms of torsions; -1 - m for the moved atom m */ \
    global const fine4 *RESTRICT series     /* as for cosine_series */

// Slots and candidates of rows.
#define SLOTS(RESTRICT) \
    const int n_slots,                      /* maximum number per row */ \
    const int n_candidates,                 /* maximum number per row */ \
    const int n_movers,                     /* maximum number per row, padded to whole vectors per slot */ \
    global const int *RESTRICT places,      /* (n_rows of the ensemble) index of a row in the following arrays */ \
    global const int *RESTRICT slots,       /* (n, n_slots) number of the side chain; -1 for none */ \
    global const int *RESTRICT firsts,      /* (n, n_slots + 1) index of the first candidate */ \
    global const int *RESTRICT mover_firsts,  /* (n, n_slots + 1) index of its first atom among the movers of the row */ \
    global const real4 *RESTRICT turns,     /* (n, n_candidates) of chi1 to chi4 [rad] */ \
    global const real *RESTRICT columns     /* (n, COLUMNS, n_columns) */

// A side chain of a row, and a candidate of it with its positions.
typedef struct {
    SideChain chain;
    global const int *moved, *turned;
    real angles[MOST_CHI];
    real x[MOST_MOVED], y[MOST_MOVED], z[MOST_MOVED];
} Built;

INLINE Point column_place(global const real *own, int n_columns, int atom) {
    const Point place = {own[X * n_columns + atom], own[Y * n_columns + atom], own[Z * n_columns + atom]};
    return place;
}

// Builds the moved atom m; its last bond is rotated first, so that the other axes are still at their initial positions.
// polar: [rad]
INLINE void build_atom(Built *built, int m, real polar, global const real *own, int n_columns, global const int2 *axes) {
    Point point = column_place(own, n_columns, built->moved[m]);
    const int bits = built->turned[m];
    for (int bond = built->chain.n_bonds - 1; bond >= 0; --bond) {
        if (!(bits >> bond & 1)) continue;
        const int2 axis = axes[built->chain.first_bond + bond];
        const real angle = bond < built->chain.n_chi ? built->angles[bond] : polar;
        if (angle == 0) continue;
        const Turn turn = turn_about(
            column_place(own, n_columns, axis.x), column_place(own, n_columns, axis.y), angle);
        point = turned_point(point, &turn);
    }
    built->x[m] = point.x;
    built->y[m] = point.y;
    built->z[m] = point.z;
}

// Builds a side chain from four angles, and the angle of its polar hydrogens.
INLINE void build(
    Built *built, SideChain chain, real4 by, real polar, global const real *own, int n_columns,
    global const int *moved, global const int *turned, global const int2 *axes) {
    built->chain = chain;
    built->moved = moved + chain.first_moved;
    built->turned = turned + chain.first_moved;
    built->angles[0] = by.x;
    built->angles[1] = by.y;
    built->angles[2] = by.z;
    built->angles[3] = by.w;
    for (int m = 0; m < chain.n_moved; ++m) build_atom(built, m, polar, own, n_columns, axes);
}

// Whether the atom is a polar hydrogen that is scanned.
INLINE bool is_polar(const Built *built, int m) {
    return built->chain.polar_steps > 1 && (built->turned[m] >> built->chain.n_chi & 1);
}

// Moves the polar hydrogens to one of their angles.
INLINE void place_polar(Built *built, int step, global const real *own, int n_columns, global const int2 *axes) {
    for (int m = 0; m < built->chain.n_moved; ++m)
        if (is_polar(built, m)) build_atom(built, m, step * POLAR_STEP, own, n_columns, axes);
}

// Lennard-Jones and Coulomb energies of pairs, and the GB energy if included. charges: for Coulomb; gb_charges: for GB
INLINE realv pair_energy(realv r2, realv charges, realv gb_charges, realv s2, realv well, realv born, const PairModel *model) {
    const realv inv_r = inverse_sqrt(r2), s6 = s2 * s2 * s2;
    realv energy = lennard_jones(well * s6, s6) + coulomb_energy(charges, inv_r);
#if HAS_GB
    const realv inv_f = still_inverse_f(r2, born, still_gauss(r2, GAUSS_EXPONENT * inverse(born)));
    realv kappa_f;
    const realv screened = gb_screened(inv_f, model->kappa, model->outside, &kappa_f);
    energy += gb_energy(gb_charges * inv_f, screened, 1);
#endif
    return energy;
}

INLINE realv squared(realv dx, realv dy, realv dz) {
    const realv r2 = dx * dx + dy * dy + dz * dz;
    return CHOOSE(NEAREST2, r2, r2 > NEAREST2);
}

// Energy of the moved atom m with a vector of atoms from columns that are `stride` apart.
INLINE realv energy_with(
    const Built *built, int m, real4 trait, real born, global const real *columns, int stride, int first,
    const PairModel *model) {
    global const real *at = columns + first;
    const realv r2 = squared(
        LOAD(X * stride, at) - built->x[m], LOAD(Y * stride, at) - built->y[m], LOAD(Z * stride, at) - built->z[m]);
    const realv shield = LOAD(INVERSE_EPS * stride, at);
    const realv charges = LOAD(CHARGE * stride, at) * trait.x * CHOOSE((realv)trait.w, shield, shield < trait.w);
    const realv s2 = scaled_sigma2(LOAD(SIGMA * stride, at), trait.y, inverse_sqrt(r2));
    return pair_energy(r2, charges, charges, s2, LOAD(WELL * stride, at) * trait.z, LOAD(BORN * stride, at) * born, model);
}

// Energy with a block of atoms that contains special pairs; pairs: (PAIR_COLUMNS, SIDE_CHAIN_BLOCK)
INLINE realv energy_near(
    const Built *built, int m, real4 trait, real born, global const real *columns, int stride, int first,
    global const real *pairs, const PairModel *model) {
    global const real *at = columns + first;
    const realv r2 = squared(
        LOAD(X * stride, at) - built->x[m], LOAD(Y * stride, at) - built->y[m], LOAD(Z * stride, at) - built->z[m]);
    const realv shield = LOAD(INVERSE_EPS * stride, at), weight = LOAD(WEIGHT * stride, at);
    const realv lesser = CHOOSE((realv)trait.w, shield, shield < trait.w);
    const realv inv_r = inverse_sqrt(r2), s = LOAD(PAIR_SIGMA * SIDE_CHAIN_BLOCK, pairs) * inv_r;
    return pair_energy(
        r2, LOAD(PAIR_CHARGES * SIDE_CHAIN_BLOCK, pairs) * weight * lesser, LOAD(CHARGE * stride, at) * trait.x * lesser, s * s,
        LOAD(PAIR_WELL * SIDE_CHAIN_BLOCK, pairs) * weight, LOAD(BORN * stride, at) * born, model);
}

// Energy between the moved atoms m and k.
INLINE real energy_inside(
    const Built *built, int m, int k, global const real *own, int n_columns,
    global const real4 *traits, global const real4 *inner, const PairModel *model) {
    const int i = built->moved[m], j = built->moved[k];
    const real dx = built->x[m] - built->x[k], dy = built->y[m] - built->y[k], dz = built->z[m] - built->z[k];
    const real r2 = fmax(dx * dx + dy * dy + dz * dz, NEAREST2);
    const real4 pair = inner[built->chain.first_inner + m * built->chain.n_moved + k];
    const real shield = fmin(traits[i].w, traits[j].w), inv_r = (real)1 / sqrt(r2), s2 = pair.y * pair.y / r2;
    const real s6 = s2 * s2 * s2;
    real energy = pair.z * s6 * (s6 - (real)1) + pair.x * shield * inv_r;
#if HAS_GB
    const real product = own[BORN * n_columns + i] * own[BORN * n_columns + j];
    const real f = sqrt(r2 + product * exp((real)-0.25 * r2 / product));
    energy -= traits[i].x * traits[j].x * shield * ((real)1 - model->outside * exp(-model->kappa * f)) / f;
#endif
    return energy;
}

// Energy of the moved atom m with the fixed atoms.
INLINE real energy_outside(
    const Built *built, int m, global const real *own, int n_columns, global const real4 *traits,
    global const int *near, global const real *near_pairs, const PairModel *model) {
    const int atom = built->moved[m];
    const real4 trait = traits[atom];
    const real born = own[BORN * n_columns + atom];
    const int n_near = built->chain.n_near;
    int met = 0;
    realv sum = 0;
    real whole = 0;
    for (int block = 0; block < n_columns / SIDE_CHAIN_BLOCK; ++block) {
        const bool special = met < n_near && near[built->chain.first_near + met] == block;
        if (special) {
            const size_t first = (size_t)built->chain.first_pairs + (size_t)(met * built->chain.n_moved + m) * PAIR_COLUMNS * SIDE_CHAIN_BLOCK;
            for (int k = 0; k < SIDE_CHAIN_BLOCK; k += WIDTH)
                sum += energy_near(built, m, trait, born, own, n_columns, block * SIDE_CHAIN_BLOCK + k, near_pairs + first + k, model);
            ++met;
        } else {
            for (int k = 0; k < SIDE_CHAIN_BLOCK; k += WIDTH)
                sum += energy_with(built, m, trait, born, own, n_columns, block * SIDE_CHAIN_BLOCK + k, model);
        }
        if ((block & 15) == 15) {  // partial sums preserve float32 accuracy
            whole += lane_sum(sum);
            sum = 0;
        }
    }
    return whole + lane_sum(sum);
}

// Position of an atom of a torsion: from the side chain if its index is negative, else from the row.
INLINE Vector member_place(const Built *built, int member, global const real *own, int n_columns) {
    const int m = -1 - member;
    Vector place;
    place.x = member < 0 ? built->x[m] : own[X * n_columns + member];
    place.y = member < 0 ? built->y[m] : own[Y * n_columns + member];
    place.z = member < 0 ? built->z[m] : own[Z * n_columns + member];
    return place;
}

// Energy of the torsions from `first` to `end`, exclusive.
INLINE real energy_of_torsions(
    const Built *built, int first, int end, global const real *own, int n_columns, global const int4 *members,
    global const fine4 *series) {
    fine energy = 0;
    for (int t = first; t < end; ++t) {
        const Vector i = member_place(built, members[t].x, own, n_columns), j = member_place(built, members[t].y, own, n_columns);
        const Vector k = member_place(built, members[t].z, own, n_columns), l = member_place(built, members[t].w, own, n_columns);
        const Torsion torsion = torsion_of(combined(1, i, -1, j), combined(1, j, -1, k), combined(1, l, -1, k));
        fine slope;
        energy += cosine_series(&torsion, 1, series + t, &slope);
    }
    return (real)energy;
}

// Slot of a candidate of a row; -1 for none.
INLINE int slot_of(global const int *firsts, int n_slots, int candidate) {
    for (int slot = 0; slot < n_slots; ++slot)
        if (candidate < firsts[slot + 1]) return slot;
    return -1;
}

// One work-item per column: an atom, or padding.
kernel void spread(
    ENSEMBLE,
    const int n_columns,
    global const int *restrict places,
    global const real4 *restrict traits,
    global const uchar *restrict movable,  // (n, n_columns) 1 for atoms of predicted side chains
    global real *restrict columns)
{
    const Structure own = structure_here(rows, steps, listed, bytes);
    const int i = get_global_id(0), place = places[own.number];
    if (i >= n_columns) return;
    global real *at = columns + (size_t)place * COLUMNS * n_columns + i;
    const bool there = i < own.n_atoms;
    const real4 trait = there ? traits[i] : (real4)(0, 0, 0, 1);
    const real weight = there && !movable[(size_t)place * n_columns + i] ? (real)1 : (real)0;
    for (int axis = 0; axis < 3; ++axis)
        at[axis * n_columns] = there ? coordinate_difference(own.positions[3 * i + axis], 0, own.step) : (real)0;
    at[BORN * n_columns] = there && HAS_GB ? own.radii[i] : (real)1;
    at[CHARGE * n_columns] = weight * trait.x;
    at[SIGMA * n_columns] = trait.y;
    at[WELL * n_columns] = weight * trait.z;
    at[INVERSE_EPS * n_columns] = trait.w;
    at[WEIGHT * n_columns] = weight;
}

// Smallest distance of a candidate's atoms, without polar hydrogens, from the fixed atoms, in units of half the sum of
// sigmas. One work-item per candidate. Stops below least_factor, since the candidate is then rejected.
kernel void screen(
    ENSEMBLE, CHAINS(restrict), SLOTS(restrict), const real least_factor, global const real *restrict halves,
    global real *restrict clearances)
{
    const int number = listed[get_global_id(1)], place = places[number], candidate = get_global_id(0);
    const int slot = slot_of(firsts + place * (n_slots + 1), n_slots, candidate);
    if (slot < 0) return;
    const SideChain chain = chains[slots[place * n_slots + slot]];
    global const real *own = columns + (size_t)place * COLUMNS * n_columns;
    Built built;
    build(&built, chain, turns[(size_t)place * n_candidates + candidate], 0, own, n_columns, moved, turned, axes);
    real least = FAR;
    for (int m = 0; m < chain.n_moved && least >= least_factor * least_factor; ++m) {
        if (is_polar(&built, m)) continue;
        const real own_half = halves[built.moved[m]];
        realv lowest = FAR;
        int met = 0;
        for (int block = 0; block < n_columns / SIDE_CHAIN_BLOCK; ++block) {
            const bool special = met < chain.n_near && near[chain.first_near + met] == block;
            const size_t first = (size_t)chain.first_pairs + (size_t)(met * chain.n_moved + m) * PAIR_COLUMNS * SIDE_CHAIN_BLOCK + PAIR_SCREENED * SIDE_CHAIN_BLOCK;
            for (int k = 0; k < SIDE_CHAIN_BLOCK; k += WIDTH) {
                const int j = block * SIDE_CHAIN_BLOCK + k;
                const realv r2 = squared(
                    LOAD(X * n_columns + j, own) - built.x[m], LOAD(Y * n_columns + j, own) - built.y[m],
                    LOAD(Z * n_columns + j, own) - built.z[m]);
                const realv sum = LOAD(j, halves) + own_half;
                realv counted = LOAD(WEIGHT * n_columns + j, own);
                if (special) counted *= LOAD(k, near_pairs + first);
                const realv ratio2 = CHOOSE((realv)FAR, r2 * inverse(sum * sum), counted * sum > (real)1e-3);
                lowest = fmin(lowest, ratio2);
            }
            met += special;
        }
        real parts[WIDTH];
        STORE(lowest, 0, parts);
        for (int k = 0; k < WIDTH; ++k) least = fmin(least, parts[k]);
    }
    clearances[(size_t)place * n_candidates + candidate] = sqrt(least);
}

// Keeps the candidates without a clash by the first factor, else by the second, else only the first candidate. One
// work-item per slot.
kernel void survive(
    ENSEMBLE, SLOTS(restrict), const real factor, const real least_factor, global const real *restrict clearances,
    global int *restrict alive, global int *restrict counts)
{
    const int number = listed[get_global_id(1)], place = places[number], slot = get_global_id(0);
    if (slot >= n_slots) return;
    const int first = firsts[place * (n_slots + 1) + slot], end = firsts[place * (n_slots + 1) + slot + 1];
    global const real *own = clearances + (size_t)place * n_candidates;
    global int *kept = alive + (size_t)place * n_candidates + first;
    int count = 0;
    for (int attempt = 0; attempt < 2 && count == 0; ++attempt)
        for (int k = first; k < end; ++k)
            if (own[k] >= (attempt ? least_factor : factor)) kept[count++] = k;
    if (count == 0 && end > first) kept[count++] = first;
    counts[place * n_slots + slot] = count;
}

// Energy of a candidate with the fixed atoms and within itself, and that of its polar hydrogens at each angle. One
// work-item per candidate.
kernel void settled(
    ENSEMBLE, CHAINS(restrict), SLOTS(restrict), global const int *restrict alive, global const int *restrict counts,
    global real *restrict fixed,        // (n, n_candidates) [kcal/mol]
    global real *restrict fixed_polar)  // (n, n_candidates, MOST_POLAR) [kcal/mol]
{
    const int number = listed[get_global_id(1)], place = places[number], item = get_global_id(0);
    const int slot = slot_of(firsts + place * (n_slots + 1), n_slots, item);
    if (slot < 0) return;
    if (item - firsts[place * (n_slots + 1) + slot] >= counts[place * n_slots + slot]) return;
    const size_t candidate = (size_t)place * n_candidates + alive[(size_t)place * n_candidates + item];
    const SideChain chain = chains[slots[place * n_slots + slot]];
    global const real *own = columns + (size_t)place * COLUMNS * n_columns;
    Built built;
    build(&built, chain, turns[candidate], 0, own, n_columns, moved, turned, axes);
    // First all atoms except polar hydrogens, then these at each of their angles.
    for (int step = -1; step < (chain.polar_steps > 1 ? chain.polar_steps : 0); ++step) {
        const bool polar = step >= 0;
        if (polar) place_polar(&built, step, own, n_columns, axes);
        real energy = energy_of_torsions(
            &built, polar ? chain.first_polar_torsion : chain.first_torsion,
            polar ? chain.end_torsion : chain.first_polar_torsion, own, n_columns, members, series);
        for (int m = 0; m < chain.n_moved; ++m) {
            if (is_polar(&built, m) != polar) continue;
            energy += energy_outside(&built, m, own, n_columns, traits, near, near_pairs, &model);
            for (int k = 0; k < chain.n_moved; ++k)
                if (is_polar(&built, k) ? polar && k < m : polar || k < m)
                    energy += energy_inside(&built, m, k, own, n_columns, traits, inner, &model);
        }
        if (polar) fixed_polar[candidate * MOST_POLAR + step] = energy;
        else fixed[candidate] = energy;
    }
}

// Energy of the moved atom m with the current side chains of other slots.
INLINE real energy_with_movers(
    const Built *built, int m, int slot, int n_slots, global const int *present, global const int *mover_firsts,
    global const real *movers, int n_movers, global const real *own, int n_columns, global const real4 *traits,
    const PairModel *model) {
    const int atom = built->moved[m];
    const real4 trait = traits[atom];
    const real born = own[BORN * n_columns + atom];
    realv sum = 0;
    for (int other = 0; other < n_slots; ++other) {
        if (other == slot || present[other] == NO_CANDIDATE) continue;
        for (int k = mover_firsts[other]; k < mover_firsts[other + 1]; k += WIDTH)
            sum += energy_with(built, m, trait, born, movers, n_movers, k, model);
    }
    return lane_sum(sum);
}

// Energy of a candidate at the best angle of its polar hydrogens, the index of that angle, and the free energy over all
// angles. One work-item per candidate of the slot.
kernel void met(
    ENSEMBLE, CHAINS(restrict), SLOTS(restrict), const int slot, const real kt, global const int *restrict alive,
    global const int *restrict counts, global const real *restrict fixed, global const real *restrict fixed_polar,
    global const int *restrict chosen,   // (n, n_slots) candidate; NO_CANDIDATE if the side chain is absent
    global const real *restrict movers,  // (n, WEIGHT, n_movers) as columns
    global real *restrict least, global real *restrict free_energies, global int *restrict best)
{
    const int number = listed[get_global_id(1)], place = places[number], item = get_global_id(0);
    if (slots[place * n_slots + slot] < 0 || item >= counts[place * n_slots + slot]) return;
    const int first = firsts[place * (n_slots + 1) + slot];
    const size_t candidate = (size_t)place * n_candidates + alive[(size_t)place * n_candidates + first + item];
    const SideChain chain = chains[slots[place * n_slots + slot]];
    global const real *own = columns + (size_t)place * COLUMNS * n_columns;
    global const real *of_row = movers + (size_t)place * WEIGHT * n_movers;
    global const int *present = chosen + place * n_slots, *their_firsts = mover_firsts + place * (n_slots + 1);
    Built built;
    build(&built, chain, turns[candidate], 0, own, n_columns, moved, turned, axes);
    real heavy = 0, lowest = chain.polar_steps > 1 ? FAR : (real)0, sum = chain.polar_steps > 1 ? (real)0 : (real)1;
    int angle = 0;
    for (int step = -1; step < (chain.polar_steps > 1 ? chain.polar_steps : 0); ++step) {
        const bool polar = step >= 0;
        if (polar) place_polar(&built, step, own, n_columns, axes);
        real energy = polar ? fixed_polar[candidate * MOST_POLAR + step] : fixed[candidate];
        for (int m = 0; m < chain.n_moved; ++m)
            if (is_polar(&built, m) == polar)
                energy += energy_with_movers(
                    &built, m, slot, n_slots, present, their_firsts, of_row, n_movers, own, n_columns, traits, &model);
        if (!polar) {
            heavy = energy;
        } else if (energy < lowest) {
            sum = sum * exp((energy - lowest) / kt) + (real)1;
            lowest = energy;
            angle = step;
        } else {
            sum += exp((lowest - energy) / kt);
        }
    }
    least[candidate] = heavy + lowest;
    free_energies[candidate] = heavy + lowest - kt * log(sum);
    best[candidate] = angle;
}

// Absolute difference of two angles [rad], modulo full turns.
INLINE real apart(real a, real b) {
    const real d = a - b, turn = (real)6.283185307179586;
    return fabs(d - turn * rint(d / turn));
}

INLINE bool alike(real4 a, real4 b, real width) {
    return apart(a.x, b.x) <= width && apart(a.y, b.y) <= width && apart(a.z, b.z) <= width && apart(a.w, b.w) <= width;
}

// One work-item per row. Candidates within `width` [rad] of the lowest remaining one form a group; the lowest candidate
// of the group with the largest weight is chosen. begins: take the first candidate, the initial conformation of the
// side chain
kernel void choose(
    ENSEMBLE, CHAINS(restrict), SLOTS(restrict), const int slot, const real kt, const real width, const int begins,
    global const int *restrict alive, global const int *restrict counts, global const real *restrict least,
    global const real *restrict free_energies, global const int *restrict best,
    global int *restrict grouped,  // (n, n_candidates) whether a candidate is in a group
    global int *restrict chosen,
    global int *restrict angles,   // (n, n_slots) index of the angle of the polar hydrogens
    global real *restrict movers,
    global int *restrict changed)  // (n) side chains that moved in this sweep
{
    const int number = listed[get_global_id(1)], place = places[number], slot_place = place * n_slots + slot;
    if (get_global_id(0) > 0 || slots[slot_place] < 0) return;
    const int first = firsts[place * (n_slots + 1) + slot], count = counts[slot_place];
    const size_t row = (size_t)place * n_candidates;
    int taken = first, angle = 0;
    if (!begins) {
        global const int *kept = alive + row + first;
        real lowest = FAR, left = 0, heaviest = -1;
        for (int k = 0; k < count; ++k) {
            lowest = fmin(lowest, free_energies[row + kept[k]]);
            grouped[row + kept[k]] = 0;
        }
        for (int k = 0; k < count; ++k) left += exp((lowest - free_energies[row + kept[k]]) / kt);
        while (left > heaviest) {
            int leader = NO_CANDIDATE;
            for (int k = 0; k < count; ++k)
                if (!grouped[row + kept[k]] && (leader < 0 || least[row + kept[k]] < least[row + leader])) leader = kept[k];
            if (leader < 0) break;
            real weight = 0;
            for (int k = 0; k < count; ++k) {
                const size_t other = row + kept[k];
                if (grouped[other] || !alike(turns[other], turns[row + leader], width)) continue;
                grouped[other] = 1;
                weight += exp((lowest - free_energies[other]) / kt);
            }
            grouped[row + leader] = 1;
            left -= weight;
            if (weight > heaviest) {
                heaviest = weight;
                taken = leader;
            }
        }
        angle = best[row + taken];
    }
    if (chosen[slot_place] != taken || angles[slot_place] != angle) ++changed[place];
    chosen[slot_place] = taken;
    angles[slot_place] = angle;
    const SideChain chain = chains[slots[slot_place]];
    global const real *own = columns + (size_t)place * COLUMNS * n_columns;
    Built built;
    build(&built, chain, turns[row + taken], angle * POLAR_STEP, own, n_columns, moved, turned, axes);
    global real *out = movers + (size_t)place * WEIGHT * n_movers + mover_firsts[place * (n_slots + 1) + slot];
    for (int m = 0; m < chain.n_moved; ++m) {
        const real4 trait = traits[built.moved[m]];
        const real values[WEIGHT] = {
            built.x[m], built.y[m], built.z[m], own[BORN * n_columns + built.moved[m]], trait.x, trait.y, trait.z, trait.w};
        for (int c = 0; c < WEIGHT; ++c) out[c * n_movers + m] = values[c];
    }
}

// Copies the atoms of the chosen candidates to the positions of the row. One work-item per slot.
kernel void settle(
    ENSEMBLE, CHAINS(restrict), SLOTS(restrict), global const int *restrict chosen, global const int *restrict angles)
{
    const Structure own = structure_here(rows, steps, listed, bytes);
    const int place = places[own.number], slot = get_global_id(0);
    if (slot >= n_slots || slots[place * n_slots + slot] < 0) return;
    const int taken = chosen[place * n_slots + slot];
    const SideChain chain = chains[slots[place * n_slots + slot]];
    global const real *at = columns + (size_t)place * COLUMNS * n_columns;
    Built built;
    build(
        &built, chain, turns[(size_t)place * n_candidates + taken], angles[place * n_slots + slot] * POLAR_STEP, at, n_columns,
        moved, turned, axes);
    for (int m = 0; m < chain.n_moved; ++m) {
        const int i = built.moved[m];
        const real there[3] = {built.x[m], built.y[m], built.z[m]};
        for (int axis = 0; axis < 3; ++axis) move_atom(&own, i, axis, there[axis] - at[axis * n_columns + i]);
    }
}
