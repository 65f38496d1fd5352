// LANES work-items own an atom i and share its neighbour list: all its pairs, from both sides. Each pair is computed
// twice, once for each atom, and nothing is scattered; a tree in local memory adds the sums of the lanes. The records
// of the atoms are precomputed (RECORDS), or computed for each pair, which saves a launch for small molecules.
#include "common/real.clh"
#include "nonbond/pair.clh"
#include "common/sums.clh"
#include "nonbond/results.clh"

#ifndef RECORDS
#error "RECORDS: 1 where nonbond/place.cl made the records of the atoms, else 0"
#endif
#if !RECORDS
#include "nonbond/point.clh"
#endif
#ifndef GROUP
#error "GROUP: work-items in a work-group, a power of two and a multiple of LANES"
#endif
#ifndef LANES
#error "LANES: work-items an atom, a power of two"
#endif
#if LANES > GROUP  // a device with small work-groups
#undef LANES
#define LANES GROUP
#endif

// With few atoms, the latency of each work-item dominates: the next neighbour is prefetched.
#define READ_AHEAD !RECORDS

#if OWN_VALUES
#define OWN_VALUES_OF(k) sigma2[pair_of[k]], charges[pair_of[k]]
#else
#define OWN_VALUES_OF(k) 0, 0
#endif

#if RECORDS
#define ATOM_AT(i) atom_of(points[i], traits[i])
#elif GB
#define ATOM_AT(i) atom_of(point_of(PASS_STEP positions + 3 * (i), atom_charges[i]), trait_of(traits[i], roots[i]))
#else
#define ATOM_AT(i) atom_of(point_of(PASS_STEP positions + 3 * (i), atom_charges[i]), traits[i])
#endif

kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void nonbond_rows(
    const ListModel constants,
    const int n_atoms,
    const Destination to,
    global const int *restrict offsets,      // (n_atoms + 1) index of each atom's first neighbour
    global const uint *restrict neighbours,  // (2 n_pairs) the other atom, with its ONE_FOUR bit
#if OWN_VALUES
    global const int *restrict pair_of,      // (2 n_pairs) the pair in the list
    global const real *restrict sigma2,      // (n_pairs) [A^2]
    global const real *restrict charges,     // (n_pairs) product of charges times Coulomb's constant
#endif
#if RECORDS
    global const point4 *restrict points,    // (n_conformations, n_atoms)
    global const real4 *restrict traits,     // ([n_conformations,] n_atoms)
#else
    STEP_ARGUMENT
    global const position *restrict positions,  // (n_conformations, n_atoms, 3) relative to the centre of the molecule
    global const real *restrict atom_charges,   // (n_atoms)
#if GB
    global const real *restrict roots,          // (n_conformations, n_atoms) sqrt(1 / Born radius)
#endif
    global const real4 *restrict traits,        // (n_atoms) without Born radii
#endif
    global real *restrict energies,          // nonbond/results.clh
    global real *restrict results)           // nonbond/results.clh
{
    local real scratch[3 * GROUP];
    const ListModel *model = &constants;
    const int item = get_local_id(0), lane = item % LANES;
    const int i = get_global_id(0) / LANES, conformation = get_global_id(2);
#if RECORDS
    points += (size_t)conformation * n_atoms;
    traits += TRAITS_OF(conformation, n_atoms);
#else
    positions += 3 * (size_t)conformation * n_atoms;
#if GB
    roots += (size_t)conformation * n_atoms;
#endif
#endif
    real lennard_jones = 0, coulomb = 0, gb = 0, gx = 0, gy = 0, gz = 0;
    if (i < n_atoms) {
        const Atom here = ATOM_AT(i);
        const int end = offsets[i + 1];
        int k = offsets[i] + lane;
        uint next = k < end ? neighbours[k] : 0;
        for (; k < end; k += LANES) {
            const uint entry = READ_AHEAD ? next : neighbours[k];
            if (READ_AHEAD && k + LANES < end) next = neighbours[k + LANES];
            const int j = ATOM(entry);
            const Atom there = ATOM_AT(j);
            const Between apart = between(&here, &there);
            const Pair pair = evaluate_pair(&apart, &here, &there, OWN_VALUES_OF(k), (entry & ONE_FOUR) != 0, model);
            lennard_jones += pair.lennard_jones;
            coulomb += pair.coulomb;
            gb += pair.gb;
            gx += pair.gx;
            gy += pair.gy;
            gz += pair.gz;
        }
        // Each pair is visited from both atoms, so each visit counts half of its energy.
        lennard_jones *= (real)0.5 * here.well;
        coulomb *= (real)0.5 * FIRST_CHARGE(&here);
        gb *= (real)0.5 * FIRST_CHARGE(&here) * GB_FACTOR;
    }
    global real *group_energies = energies_of(energies, &to, conformation, get_group_id(0));
    add_over_group(lennard_jones, coulomb, gb, scratch, item, GROUP, group_energies);
    barrier(CLK_LOCAL_MEM_FENCE);
    scratch[item] = gx;
    scratch[GROUP + item] = gy;
    scratch[2 * GROUP + item] = gz;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int half_lanes = LANES / 2; half_lanes > 0; half_lanes /= 2) {
        if (lane < half_lanes) {
            scratch[item] += scratch[item + half_lanes];
            scratch[GROUP + item] += scratch[GROUP + item + half_lanes];
            scratch[2 * GROUP + item] += scratch[2 * GROUP + item + half_lanes];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (lane == 0 && i < n_atoms) {
        global real *gradient = gradient_of(results, &to, conformation);
        gradient[3 * i] = scratch[item];
        gradient[3 * i + 1] = scratch[GROUP + item];
        gradient[3 * i + 2] = scratch[2 * GROUP + item];
    }
}
