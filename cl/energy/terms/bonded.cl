// Bonded terms and 1-4 pairs; docs/theory/bonded.md. A work-group owns ATOMS neighbouring atoms of one conformation (third
// dimension), and computes every term of theirs once. Several work-items leave what a term gives to each atom in a slot of
// its own, in local memory where that of each group suffices, and then add up the slots of each atom in order; a single one
// adds to few slots, one for each sort of term and atom. No atomics, the same bits every run. Terms of atoms of several
// groups are computed by each of them.
//
// Where BEGINS this is the first launch and begins the gradient; the groups behind those of bonded terms, which have no
// atoms then, bring positions to the tiles. Else it comes after all other passes, whose gradient it adds to.
#include "common/real.clh"
#include "common/vector.clh"
#include "energy/results.clh"
#include "physics/angle.clh"
#include "physics/cmap.clh"
#include "physics/coulomb.clh"
#include "physics/harmonic.clh"
#include "physics/lennard_jones.clh"
#include "physics/torsion.clh"
#include "shared/bonded"

#ifndef ATOMS
#error "ATOMS: of a work-group"
#endif
#ifndef ITEMS
#error "ITEMS: work-items of a work-group, a power of two"
#endif
#ifndef LOCAL_SLOTS
#error "LOCAL_SLOTS: slots of a group in local memory; 0 where they are in global memory"
#endif
#ifndef BEGINS
#error "BEGINS: 1 for the first launch, else 0"
#endif
#if BEGINS
#include "common/place.clh"
#endif
#define TOGETHER 32  // work-items that should do the same, on GPUs
#if LOCAL_SLOTS
#define SLOTS local
#else
#define SLOTS global
#endif
#if ITEMS == 1
#define KEEP +=
#else
#define KEEP =
#endif

typedef struct {
    global const coordinate *positions;  // of the conformation
    real step;                           // A of a coordinate's unit
    global const int4 *atoms, *places;   // (n_tasks) members and their slots; a member of another group has none
    global const int2 *details;          // (n_tasks) first of its parameters, and how many, or the size of its map
    global const fine4 *parameters;
    SLOTS real4 *slots;                  // gradient, energy
    int first_slot;                      // the place that comes first in them
} Work;

INLINE void keep(const Work *work, int place, fine slope, Vector by, fine energy) {
    if (place < 0) return;
    work->slots[place - work->first_slot] KEEP (real4)((real)(slope * by.x), (real)(slope * by.y), (real)(slope * by.z), (real)energy);
}

INLINE void stretch(const Work *work, int task) {
    const int4 atoms = work->atoms[task], places = work->places[task];
    const fine4 parameters = work->parameters[work->details[task].x];
    const Vector d = vector_between(work->positions, atoms.x, atoms.y, work->step);
    const fine r2 = dot_product(d, d), inv_r = inverse_root(r2);
    fine slope;
    const fine energy = harmonic_energy(parameters.x, r2 * inv_r - parameters.y, &slope);
    keep(work, places.x, slope * inv_r, d, energy / 2);
    keep(work, places.y, -slope * inv_r, d, energy / 2);
}

INLINE void bend(const Work *work, int task) {
    const int4 atoms = work->atoms[task], places = work->places[task];
    const fine4 parameters = work->parameters[work->details[task].x];
    const Angle angle = angle_of(
        vector_between(work->positions, atoms.x, atoms.y, work->step),
        vector_between(work->positions, atoms.z, atoms.y, work->step));
    fine slope;
    const fine away = angle_between(angle.sine, angle.cosine, parameters.y, parameters.z) + parameters.w;
    const fine energy = harmonic_energy(parameters.x, away, &slope);
    const fine share = energy * ((fine)1 / 3);
    keep(work, places.x, slope, angle.by_i, share);
    keep(work, places.y, -slope, combined(1, angle.by_i, 1, angle.by_k), share);
    keep(work, places.z, slope, angle.by_k, share);
}

INLINE Torsion torsion_among(const Work *work, int4 atoms) {
    return torsion_of(
        vector_between(work->positions, atoms.x, atoms.y, work->step),
        vector_between(work->positions, atoms.y, atoms.z, work->step),
        vector_between(work->positions, atoms.w, atoms.z, work->step));
}

INLINE void keep_torsion(const Work *work, int task, const Torsion *torsion, fine slope, fine share) {
    const int4 places = work->places[task];
    keep(work, places.x, slope, torsion->by_i, share);
    keep(work, places.y, slope, torsion->by_j, share);
    keep(work, places.z, slope, torsion->by_k, share);
    keep(work, places.w, slope, torsion->by_l, share);
}

INLINE void twist(const Work *work, int task) {
    const int2 detail = work->details[task];
    const Torsion torsion = torsion_among(work, work->atoms[task]);
    fine slope;
    const fine energy = cosine_series(&torsion, detail.y, work->parameters + detail.x, &slope);
    keep_torsion(work, task, &torsion, slope, energy / 4);
}

INLINE void hold(const Work *work, int task) {
    const fine4 parameters = work->parameters[work->details[task].x];
    const Torsion torsion = torsion_among(work, work->atoms[task]);
    fine slope;
    const fine away = angle_between(torsion.sine, torsion.cosine, parameters.y, parameters.z);
    const fine energy = harmonic_energy(parameters.x, away, &slope);
    keep_torsion(work, task, &torsion, slope, energy / 4);
}

// Two torsions, the second one that of the task after this one.
INLINE void cross_twists(const Work *work, int task) {
    const int2 detail = work->details[task];
    if (detail.y == 0) return;
    const Torsion first = torsion_among(work, work->atoms[task]), second = torsion_among(work, work->atoms[task + 1]);
    global const fine *patches = (global const fine *)(work->parameters + detail.x);
    fine slopes[2];
    const fine energy = cmap_energy(torsion_angle(&first), torsion_angle(&second), detail.y, patches, slopes);
    keep_torsion(work, task, &first, slopes[0], energy / 8);
    keep_torsion(work, task + 1, &second, slopes[1], energy / 8);
}

// Lennard-Jones and Coulomb energy of a 1-4 pair, in slots of either term.
INLINE void meet(const Work *work, int task, real cutoff2) {
    const int4 atoms = work->atoms[task], places = work->places[task];
    const fine4 parameters = work->parameters[work->details[task].x];
    const Vector d = vector_between(work->positions, atoms.x, atoms.y, work->step);
    const real r2 = (real)dot_product(d, d), inv_r2 = (real)1 / r2, within = r2 <= cutoff2 ? (real)1 : (real)0;
    const real s2 = (real)parameters.y * inv_r2, s6 = s2 * s2 * s2, well = (real)parameters.z * s6 * within;
    const real coulomb = coulomb_energy((real)parameters.x, sqrt(inv_r2)) * within;
    const real pull = lennard_jones_pull(well, s6, 1) * inv_r2, energy = lennard_jones(well, s6) / 2;
    keep(work, places.x, -pull, d, energy);
    keep(work, places.y, pull, d, energy);
    keep(work, places.z, -coulomb * inv_r2, d, coulomb / 2);
    keep(work, places.w, coulomb * inv_r2, d, coulomb / 2);
}

#if ITEMS > 1
// A component of the slots from `begin` on before `end`.
INLINE real sum_of(SLOTS const real *component, int begin, int end) {
    real sum = 0;
    #pragma unroll 8
    for (int slot = begin; slot < end; ++slot) sum += component[4 * slot];
    return sum;
}
#endif

// Goes on with the work-items that the kinds before leave free, after whole lots of TOGETHER.
#define EACH_TASK(kind, call) \
    for (int task = starts[kind] + ((item - taken) & (ITEMS - 1)); task < starts[kind + 1]; task += ITEMS) call; \
    taken += (starts[kind + 1] - starts[kind] + TOGETHER - 1) / TOGETHER * TOGETHER

#if BEGINS
// A slot, by a work-item that looks at all atoms of the tile by itself: no barrier, which not every group would come to.
INLINE void place_alone(
    int i, int n_tiles, int n_atoms, real step, global const coordinate *positions, PLACE_ARGUMENTS()) {
    coordinate lowest[3], highest[3];
    global const int *members = order + i / TILE * TILE;
    #pragma unroll 8
    for (int other = 0; other < TILE; ++other) {
        global const coordinate *point = positions + 3 * ((size_t)get_global_id(2) * n_atoms + members[other]);
        for (int k = 0; k < 3; ++k) {
            lowest[k] = other ? min(lowest[k], point[k]) : point[k];
            highest[k] = other ? max(highest[k], point[k]) : point[k];
        }
    }
    place_slot(i, n_tiles, n_atoms, step, positions, lowest, highest, PLACED);
}
#endif

kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void bonded_terms(
    const int n_atoms,
    const int n_rows,                             // energies before the Born radii in the results, of atoms or tiles
    const int first_term,                         // in `grouped` of the results
    const int n_slots,
    const real step,                              // A of a coordinate's unit
    const real cutoff2,                           // of 1-4 pairs [A^2]
    global const coordinate *restrict positions,  // (n_conformations, n_atoms, 3)
    global const int *restrict kind_starts,       // (n_groups, BONDED_KINDS) first task of each kind, and at the end one more
    global const int4 *restrict atoms,            // Work
    global const int4 *restrict places,
    global const int2 *restrict details,
    global const fine4 *restrict parameters,
    global const int *restrict slot_starts,       // (n_atoms, TERMS) first slot of each term, and at the end one more
    global real4 *all_slots,                      // (n_conformations, n_slots)
#if BEGINS
    const int n_tiles,
    PLACE_ARGUMENTS(restrict),
#endif
    global real *restrict results)                // energy/results.clh
{
    local real energies[ATOMS * TERMS];
    const int item = get_local_id(0), group = get_group_id(0), conformation = get_global_id(2);
    const int n_groups = (n_atoms + ATOMS - 1) / ATOMS;
    const int first = min(group * ATOMS, n_atoms), count = min(ATOMS, n_atoms - first);
#if LOCAL_SLOTS
    local real4 slots[LOCAL_SLOTS];
#else
    global real4 *slots = all_slots + (size_t)conformation * n_slots;
#endif
#if BEGINS
    if (group >= n_groups) {
        const int i = (group - n_groups) * ITEMS + item;
        if (i < n_tiles * TILE) place_alone(i, n_tiles, n_atoms, step, positions, PLACED);
    }
#endif
#if ITEMS == 1
    for (int k = 0; k < ATOMS * TERMS; ++k) slots[k] = 0;
    const int first_slot = 0;
#else
    global const int *own_starts = slot_starts + (size_t)TERMS * first;
    const int first_slot = LOCAL_SLOTS ? own_starts[0] : 0;
    local int ends[ATOMS * TERMS + 1];
    for (int k = item; k <= count * TERMS; k += ITEMS) ends[k] = own_starts[k] - first_slot;
#endif
    int starts[BONDED_KINDS + 1], taken = 0;
    #pragma unroll
    for (int kind = 0; kind <= BONDED_KINDS; ++kind) 
        starts[kind] = kind_starts[min(BONDED_KINDS * group + kind, BONDED_KINDS * n_groups)];
    const Work work = {
        positions + 3 * (size_t)conformation * n_atoms, step, atoms, places, details, parameters, slots, first_slot};
    EACH_TASK(STRETCH, stretch(&work, task));
    EACH_TASK(BEND, bend(&work, task));
    EACH_TASK(TWIST, twist(&work, task));
    EACH_TASK(HOLD, hold(&work, task));
    EACH_TASK(CROSS_TWISTS, cross_twists(&work, task));
    EACH_TASK(MEET, meet(&work, task, cutoff2));
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);

    const Results own = results_of(results, conformation, n_rows, n_atoms);
#if ITEMS == 1
    for (int k = 0; k < count; ++k) {
        real4 gradient = 0;
        for (int term = 0; term < TERMS; ++term) {
            gradient += slots[k * TERMS + term];
            energies[k * TERMS + term] = slots[k * TERMS + term].w;
        }
#if GRADIENT
        global real *out = own.gradient + 3 * (size_t)(first + k);
        vstore3(vload3(0, out) + gradient.xyz, 0, out);
#endif
    }
#else
    // A work-item a component of an atom's gradient, or one of its energies.
    SLOTS const real *components = (SLOTS const real *)slots;
#if GRADIENT
    for (int k = item; k < 3 * count; k += ITEMS) {
        const int atom = k / 3;
        global real *out = own.gradient + 3 * (size_t)first + k;
        const real before = BEGINS ? (real)0 : *out;
        *out = before + sum_of(components + k % 3, ends[atom * TERMS], ends[(atom + 1) * TERMS]);
    }
#endif
    for (int k = ITEMS - 1 - item; k < count * TERMS; k += ITEMS)
        energies[k] = sum_of(components + 3, ends[k], ends[k + 1]);
#endif
    barrier(CLK_LOCAL_MEM_FENCE);
    global real *grouped = own.grouped + (size_t)first_term * n_rows;
#if PER_ATOM
    for (int k = item; k < count * TERMS; k += ITEMS)
        grouped[(size_t)(k % TERMS) * n_rows + first + k / TERMS] = energies[k];
#else
    for (int term = item; term < TERMS; term += ITEMS) {
        real sum = 0;
        #pragma unroll 8
        for (int k = 0; k < count; ++k) sum += energies[k * TERMS + term];
        for (int row = group; group < n_groups && row < n_rows; row += n_groups) {
            grouped[(size_t)term * n_rows + row] = sum;
            sum = 0;
        }
    }
#endif
}
