// Relief of clashes: the first open try of each trial that is free of them, once side chains were turned.
#include "common/real.clh"
#include "explore/poses.clh"
#include "common/philox.clh"

#define MOST_TURNS 50  // of a try; then the next one is taken

// Tables of what turns. A group has side chains, a side chain torsions, a torsion atoms that it moves.
#define TURNS \
    global const int *group_chains,   /* (n_groups + 1) first side chain */ \
    global const int *chain_torsions, /* (n_chains + 1) first torsion */ \
    global const int *chain_most,     /* (n_chains) torsions that turn at once */ \
    global const int *axes,           /* (n_torsions, 2) atoms */ \
    global const int *n_values,       /* (n_torsions) turns that there are */ \
    global const int *torsion_moved,  /* (n_torsions + 1) first atom */ \
    global const int *moved           /* atoms */
#define TURNS_PASSED group_chains, chain_torsions, chain_most, axes, n_values, torsion_moved, moved

// The work-items of a group share the atoms of a pose. All take the same turns and meet at the same barriers.
#define SHARED_BARRIER() barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)

// A pose under way. at : of members; places : of atoms of the molecule among members
typedef struct {
    int n_ligand, n_members;
    global real *at;
    global const int *members, *groups, *places, *residues;
    global const real *radii;
    real overlap;
    ulong turned;  // groups, by bits
} Pose;

// Whole number from 0 below n.
INLINE uint below(uint bits, uint n) { return mul_hi(bits, n); }

INLINE int members_clash(const Pose *pose, int i, int j) {
    return do_clash(
        point_at(pose->at, i), point_at(pose->at, j), pose->radii[pose->members[i]], pose->radii[pose->members[j]],
        pose->overlap);
}

// Turn the atoms of a torsion about its axis.
INLINE void turn_torsion(const Pose *pose, int torsion, real angle, TURNS) {
    const Point from = point_at(pose->at, pose->places[axes[2 * torsion]]);
    const Turn turn = turn_about(from, point_at(pose->at, pose->places[axes[2 * torsion + 1]]), angle);
    for (int k = torsion_moved[torsion] + get_local_id(0); k < torsion_moved[torsion + 1]; k += get_local_size(0)) {
        const int i = pose->places[moved[k]];
        const Point there = turned_point(point_at(pose->at, i), &turn);
        global real *p = pose->at + 3 * i;
        p[0] = there.x;
        p[1] = there.y;
        p[2] = there.z;
    }
    SHARED_BARRIER();
}

// Turn side chains of a group at random. Torsions nearer to the core are likelier: weights 10, 9, ... 1, 1.
INLINE void turn_group(const Pose *pose, int group, uint2 key, uint4 counter, TURNS) {
    for (int chain = group_chains[group]; chain < group_chains[group + 1]; ++chain) {
        const int first = chain_torsions[chain], n = chain_torsions[chain + 1] - first;
        ulong chosen = 0;
        for (int pick = 0; pick < chain_most[chain]; ++pick) {
            const uint4 bits = philox(key, counter + (uint4)(0, 0, 0, 8 * (chain - group_chains[group]) + pick));
            uint total = 0;
            for (int k = 0; k < n; ++k)
                if (!(chosen >> k & 1)) total += max(10 - k, 1);
            int torsion = -1;
            for (int left = below(bits.x, total); left >= 0; left -= max(10 - torsion, 1))
                do ++torsion; while (chosen >> torsion & 1);
            chosen |= 1UL << torsion;
            const int values = n_values[first + torsion];
            turn_torsion(pose, first + torsion, (real)6.283185307179586 * below(bits.y, values) / values, TURNS_PASSED);
        }
    }
}

// Clashes that a work-item finds. groups : that clash, by bits; stuck : if a clash cannot be relieved
typedef struct {
    ulong groups;
    int stuck;
} Clashes;

// Clashes of the ligand with the atoms around it, of every so many atoms; the ligand's bit is set only if it can turn.
INLINE void meet_ligand(const Pose *pose, int can_turn, Clashes *own) {
    const Point first = point_at(pose->at, 0);
    real reach = 0, widest = 0;
    for (int i = 0; i < pose->n_ligand; ++i) {
        reach = fmax(reach, squared_distance(first, point_at(pose->at, i)));
        widest = fmax(widest, pose->radii[pose->members[i]]);
    }
    reach = sqrt(reach);
    for (int j = pose->n_ligand + get_local_id(0); j < pose->n_members; j += get_local_size(0)) {
        const real far = reach + pose->overlap * (widest + pose->radii[pose->members[j]]);
        if (squared_distance(first, point_at(pose->at, j)) > far * far) continue;
        const int group = pose->groups[j];
        for (int i = 0; i < pose->n_ligand; ++i) {
            if (!members_clash(pose, i, j)) continue;
            own->groups |= can_turn | (group == RIGID ? 0UL : 1UL << group);
            own->stuck |= group == RIGID && !can_turn;
            break;
        }
    }
}

// Clashes of what was turned: within the ligand, and of residues with others.
INLINE void meet_turned(const Pose *pose, global const int *bonded, Clashes *own) {
    if (pose->turned & 1)
        for (int i = get_local_id(0); i < pose->n_ligand; i += get_local_size(0))
            for (int j = 0; j < i; ++j)
                if (!bonded[i * pose->n_ligand + j] && members_clash(pose, i, j)) own->groups |= 1;
    if (pose->turned & ~1UL)
        for (int i = pose->n_ligand; i < pose->n_members; ++i) {
            const int group = pose->groups[i], residue = pose->residues[pose->members[i]];
            if (group == RIGID || !(pose->turned >> group & 1)) continue;
            for (int j = pose->n_ligand + get_local_id(0); j < pose->n_members; j += get_local_size(0)) {
                if (pose->residues[pose->members[j]] == residue || !members_clash(pose, i, j)) continue;
                own->groups |= 1UL << group | (pose->groups[j] == RIGID ? 0UL : 1UL << pose->groups[j]);
            }
        }
}

// All clashes of a pose. shared : (3) bits of groups, then whether one is stuck
INLINE Clashes clashing(const Pose *pose, int can_turn, global const int *bonded, local int *shared) {
    Clashes own = {0, 0};
    if (get_local_id(0) == 0) shared[0] = shared[1] = shared[2] = 0;
    meet_ligand(pose, can_turn, &own);
    meet_turned(pose, bonded, &own);
    SHARED_BARRIER();  // until all have read the pose
    if (own.groups & 0xffffffffUL) atomic_or(shared, (int)(own.groups & 0xffffffffUL));
    if (own.groups >> 32) atomic_or(shared + 1, (int)(own.groups >> 32));
    if (own.stuck) atomic_or(shared + 2, 1);
    barrier(CLK_LOCAL_MEM_FENCE);
    const Clashes all = {(ulong)(uint)shared[0] | (ulong)(uint)shared[1] << 32, shared[2]};
    barrier(CLK_LOCAL_MEM_FENCE);  // until all have read
    return all;
}

// A group a trial.
kernel void relieve(
    ENSEMBLE,
    const int most,
    const int n_ligand,
    const int n_trials,
    const int n_tries,                    // of a trial in this launch
    const int first_try,                  // number of the first of them
    const int turns,                      // whether clashes are relieved
    const int can_turn,                   // whether the ligand has torsions
    global const int *restrict members,
    global const int *restrict n_members,
    global const int *restrict places,    // (n_atoms) among members
    global const real *restrict local_at,
    global const int *restrict groups,
    global const int *restrict group_of,  // (n_rows, 64) the groups of bits in the tables of what turns
    global const int *restrict residues,  // (n_atoms of a row)
    global const int *restrict bonded,    // (n_ligand, n_ligand) whether three bonds or fewer lie between
    global const real *restrict radii,
    global const real *restrict centers,
    global const real *restrict draws,
    global const int *restrict open,
    global const uint *restrict keys,     // (n_rows, 4) seed, explorer, step, stage
    global real *restrict poses,          // (n_rows, n_trials, most, 3) [A]
    global ulong *restrict turned,        // (n_rows, n_trials) groups, by bits
    global int *restrict found,           // (n_rows, n_trials) number of the try, or -1
    TURNS)
{
    const Structure own = structure_here(ENSEMBLE_PASSED);
    const size_t place = (size_t)own.number * most;
    global const real *at = local_at + 3 * place;
    const Point center = point_at(centers + 4 * own.number, 0);
    global const uint *key = keys + 4 * own.number;
    local int shared[3];
    for (int trial = get_group_id(0); trial < n_trials; trial += get_num_groups(0)) {
        const size_t number = (size_t)own.number * n_trials + trial;
        Pose pose = {
            n_ligand, n_members[own.number], poses + 3 * most * number, members + place, groups + place,
            places + own.first_atom, residues, radii, centers[4 * own.number + 3], 0};
        int is_found = found[number] >= 0;
        SHARED_BARRIER();  // until all have read it
        for (int try = 0; try < n_tries && !is_found; ++try) {
            const size_t of_try = number * n_tries + try;
            if (!open[of_try]) continue;
            for (int k = get_local_id(0); k < pose.n_members; k += get_local_size(0)) {
                Point p = point_at(at, k);
                if (k < n_ligand) p = placed(p, center, draws + N_RIGID * of_try);
                pose.at[3 * k] = p.x;
                pose.at[3 * k + 1] = p.y;
                pose.at[3 * k + 2] = p.z;
            }
            SHARED_BARRIER();
            pose.turned = 0;
            for (int k = 0; k <= MOST_TURNS; ++k) {
                const Clashes clashes = clashing(&pose, can_turn, bonded, shared);
                is_found = !clashes.groups && !clashes.stuck;
                if (is_found || clashes.stuck || !turns || k == MOST_TURNS) break;
                const uint4 counter = {key[2], key[3], trial, 256 * ((first_try + try) * (MOST_TURNS + 1) + k)};
                const uint bits = philox((uint2)(key[0], key[1]), counter).x;
                int left = below(bits, popcount(clashes.groups)), bit = -1;
                for (; left >= 0; --left)
                    do ++bit; while (!(clashes.groups >> bit & 1));
                turn_group(
                    &pose, group_of[64 * own.number + bit], (uint2)(key[0], key[1]), counter + (uint4)(0, 0, 0, 1),
                    TURNS_PASSED);
                pose.turned |= 1UL << bit;
            }
            if (is_found && get_local_id(0) == 0) {
                found[number] = first_try + try;
                turned[number] = pose.turned;
            }
        }
    }
}

// A work-item an atom: put the pose of a trial into the row, or the row back.
kernel void take_pose(
    ENSEMBLE,
    const int most,
    const int n_ligand,
    const int n_trials,
    global const int *restrict members,
    global const int *restrict n_members,
    global const int *restrict places,
    global const int *restrict groups,
    global const coordinate *restrict before,
    global const real *restrict local_at,
    global const real *restrict poses,
    global const ulong *restrict turned,
    global const int *restrict chosen)    // (n_rows) trial, -1 for none
{
    const Structure own = structure_here(ENSEMBLE_PASSED);
    const int i = get_global_id(0);
    if (i >= own.n_atoms) return;
    const int k = places[own.first_atom + i], trial = chosen[own.number];
    const size_t number = (size_t)own.number * n_trials + trial, place = (size_t)own.number * most;
    int moves = 0;
    if (trial >= 0 && k >= 0) {
        const int group = groups[place + k];
        moves = k < n_ligand || (group != RIGID && (turned[number] >> group & 1));
    }
    for (int axis = 0; axis < 3; ++axis) {
        const coordinate was = before[3 * (own.first_atom + i) + axis];
        fine by = 0;
        if (moves) by = (fine)poses[3 * (most * number + k) + axis] - (fine)local_at[3 * (place + k) + axis];
        own.positions[3 * i + axis] = shifted(was, by, own.step);
    }
}
