// Relief of clashes: finds the first open try of each trial that has no clashes after side chains are rotated.
#include "common/real.clh"
#include "explore/poses.clh"
#include "common/philox.clh"

#define MOST_TURNS 50  // per try; then the next one is started
#define NO_TRY 0x7fffffff

// Tables of rotatable parts. A group has side chains, a side chain has torsions, a torsion has atoms that it moves.
typedef struct {
    global const int *group_chains;    // (n_groups + 1) first side chain
    global const int *chain_torsions;  // (n_chains + 1) first torsion
    global const int *chain_most;      // (n_chains) number of torsions changed at a time
    global const int *axes;            // (n_torsions, 2) atoms
    global const int *n_values;        // (n_torsions) number of evenly spaced angles
    global const int *torsion_moved;   // (n_torsions + 1) first atom
    global const int *moved;           // atoms
} Rotatable;

// Work-items of a group share the atoms of a pose. All process the same rotations, so that they execute the same
// barriers.
#define SHARED_BARRIER() barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)

// A pose in progress. at : positions of members that can move, from the first; fixed : of all members
typedef struct {
    int n_ligand, n_moving, n_members;
    global real *at;
    global const real *fixed;
    global const int *members, *groups, *starts, *places, *residues;  // places : index of each atom of the molecule among the members
    global const real *radii;
    real overlap;
    ulong turned;  // bit mask of groups
} Pose;

INLINE Point member_at(const Pose *pose, int i) {
    return i < pose->n_moving ? point_at(pose->at, i) : point_at(pose->fixed, i);
}

INLINE real radius_of(const Pose *pose, int i) { return pose->radii[pose->members[i]]; }

// Random integer in [0, n).
INLINE uint below(uint bits, uint n) { return mul_hi(bits, n); }

INLINE int members_clash(const Pose *pose, int i, int j) {
    return do_clash(member_at(pose, i), member_at(pose, j), radius_of(pose, i), radius_of(pose, j), pose->overlap);
}

// Rotates the atoms of a torsion about its axis.
INLINE void turn_torsion(const Pose *pose, int torsion, real angle, const Rotatable *parts) {
    const Point from = member_at(pose, pose->places[parts->axes[2 * torsion]]);
    const Turn turn = turn_about(from, member_at(pose, pose->places[parts->axes[2 * torsion + 1]]), angle);
    const int first = parts->torsion_moved[torsion], end = parts->torsion_moved[torsion + 1];
    for (int k = first + get_local_id(0); k < end; k += get_local_size(0)) {
        const int i = pose->places[parts->moved[k]];
        const Point there = turned_point(point_at(pose->at, i), &turn);
        global real *p = pose->at + 3 * i;
        p[0] = there.x;
        p[1] = there.y;
        p[2] = there.z;
    }
    SHARED_BARRIER();
}

// Rotates side chains of a group at random. Torsions nearer to the core are more likely: weights 10, 9, ... 1, 1.
INLINE void turn_group(const Pose *pose, int group, uint2 key, uint4 counter, const Rotatable *parts) {
    const int first_chain = parts->group_chains[group], end = parts->group_chains[group + 1];
    for (int chain = first_chain; chain < end; ++chain) {
        const int first = parts->chain_torsions[chain], n = parts->chain_torsions[chain + 1] - first;
        ulong chosen = 0;
        for (int pick = 0; pick < parts->chain_most[chain]; ++pick) {
            const uint4 bits = philox(key, counter + (uint4)(0, 0, 0, 8 * (chain - first_chain) + pick));
            uint total = 0;
            for (int k = 0; k < n; ++k)
                if (!(chosen >> k & 1)) total += max(10 - k, 1);
            int torsion = -1;
            for (int left = below(bits.x, total); left >= 0; left -= max(10 - torsion, 1))
                do ++torsion; while (chosen >> torsion & 1);
            chosen |= 1UL << torsion;
            const int values = parts->n_values[first + torsion];
            turn_torsion(pose, first + torsion, (real)6.283185307179586 * below(bits.y, values) / values, parts);
        }
    }
}

// Clashes found by a work-item. groups : bit mask of clashing groups; stuck : whether a clash cannot be relieved
typedef struct {
    ulong groups;
    int stuck;
} Clashes;

// Bounding sphere of the members from the first to before the end, with the largest of their radii.
typedef struct {
    Point center;
    real reach, widest;
} Around;

INLINE Around around(const Pose *pose, int first, int end) {
    Around found = {point_at(pose->at, first), 0, 0};
    for (int i = first; i < end; ++i) {
        found.reach = fmax(found.reach, squared_distance(found.center, point_at(pose->at, i)));
        found.widest = fmax(found.widest, radius_of(pose, i));
    }
    found.reach = sqrt(found.reach) + (real)0.01;  // margin above the rounding error
    return found;
}

// Whether an atom may clash with any atom in a sphere.
INLINE int may_clash(const Pose *pose, const Around of, Point there, real radius) {
    const real far = of.reach + pose->overlap * (of.widest + radius);
    return squared_distance(of.center, there) <= far * far;
}

// Clashes of the ligand with the atoms around it, which the work-items share; the bit of the ligand is set only if it
// has rotatable torsions.
INLINE void meet_ligand(const Pose *pose, int can_turn, Clashes *own) {
    const Around ligand = around(pose, 0, pose->n_ligand);
    for (int j = pose->n_ligand + get_local_id(0); j < pose->n_members; j += get_local_size(0)) {
        if (!may_clash(pose, ligand, member_at(pose, j), radius_of(pose, j))) continue;
        const int group = pose->groups[j];
        for (int i = 0; i < pose->n_ligand; ++i) {
            if (!members_clash(pose, i, j)) continue;
            own->groups |= can_turn | (group == RIGID ? 0UL : 1UL << group);
            own->stuck |= group == RIGID && !can_turn;
            break;
        }
    }
}

// Clashes of rotated groups: within the ligand, and of residues with others. spheres : (64) bounding spheres of rotated
// residues
INLINE void meet_turned(const Pose *pose, global const int *bonded, local const Around *spheres, Clashes *own) {
    if (pose->turned & 1)
        for (int i = get_local_id(0); i < pose->n_ligand; i += get_local_size(0))
            for (int j = 0; j < i; ++j)
                if (!bonded[i * pose->n_ligand + j] && members_clash(pose, i, j)) own->groups |= 1;
    const ulong residues = pose->turned & ~1UL;
    for (int j = pose->n_ligand + get_local_id(0); residues && j < pose->n_members; j += get_local_size(0)) {
        const Point there = member_at(pose, j);
        const real radius = radius_of(pose, j);
        for (ulong left = residues; left; left &= left - 1) {
            const int group = 63 - (int)clz(left & -left), first = pose->starts[group];
            if (!may_clash(pose, spheres[group], there, radius)) continue;
            if (pose->residues[pose->members[first]] == pose->residues[pose->members[j]]) continue;
            for (int i = first; i < pose->starts[group + 1]; ++i) {
                if (!members_clash(pose, i, j)) continue;
                own->groups |= 1UL << group | (pose->groups[j] == RIGID ? 0UL : 1UL << pose->groups[j]);
                break;
            }
        }
    }
}

// All clashes of a pose. shared : (3) bit mask of groups, then whether one is stuck
INLINE Clashes clashing(
    const Pose *pose, int can_turn, global const int *bonded, local Around *spheres, local int *shared)
{
    Clashes own = {0, 0};
    if (get_local_id(0) == 0) shared[0] = shared[1] = shared[2] = 0;
    for (int group = get_local_id(0); group < 64; group += get_local_size(0))
        if (group && pose->turned >> group & 1)
            spheres[group] = around(pose, pose->starts[group], pose->starts[group + 1]);
    meet_ligand(pose, can_turn, &own);
    barrier(CLK_LOCAL_MEM_FENCE);
    meet_turned(pose, bonded, spheres, &own);
    SHARED_BARRIER();  // until all work-items have read the pose
    if (own.groups & 0xffffffffUL) atomic_or(shared, (int)(own.groups & 0xffffffffUL));
    if (own.groups >> 32) atomic_or(shared + 1, (int)(own.groups >> 32));
    if (own.stuck) atomic_or(shared + 2, 1);
    barrier(CLK_LOCAL_MEM_FENCE);
    const Clashes all = {(ulong)(uint)shared[0] | (ulong)(uint)shared[1] << 32, shared[2]};
    barrier(CLK_LOCAL_MEM_FENCE);  // until all work-items have read the result
    return all;
}

// Groups share the tries of a trial: try k is processed by the group that is side k % n_sides of it. Each group stops
// at its first success; the lowest successful try is chosen, whichever group finishes first.
kernel void relieve(
    ENSEMBLE,
    const int most,
    const int most_moving,
    const int n_ligand,
    const int n_trials,
    const int n_sides,
    const int n_tries,                    // per trial in this launch
    const int first_try,                  // number of the first of them
    const int turns,                      // whether clashes are relieved
    const int can_turn,                   // whether the ligand has rotatable torsions
    global const int *restrict members,
    global const int *restrict n_members,
    global const int *restrict starts,    // (n_rows, 65) first member of each group, then of the rigid atoms
    global const int *restrict places,    // (n_atoms) among members
    global const real *restrict local_at,
    global const int *restrict groups,
    global const int *restrict group_of,  // (n_rows, 64) group of each bit in the tables of rotatable parts
    global const int *restrict residues,  // (n_atoms of a row)
    global const int *restrict bonded,    // (n_ligand, n_ligand) whether the atoms are at most three bonds apart
    global const real *restrict radii,
    global const real *restrict centers,
    global const real *restrict draws,
    global const int *restrict open,
    global const uint *restrict keys,     // (n_rows, 4) seed, explorer, step, stage
    global real *restrict poses,          // (n_rows, n_trials, n_sides, most_moving, 3) [A]
    global ulong *restrict turned,        // (n_rows, n_trials, n_sides) bit mask of groups
    global int *restrict found,           // (n_rows, n_trials) number of the try, or NO_TRY
    global const int *restrict group_chains,  // tables of Rotatable
    global const int *restrict chain_torsions,
    global const int *restrict chain_most,
    global const int *restrict axes,
    global const int *restrict n_values,
    global const int *restrict torsion_moved,
    global const int *restrict moved)
{
    const Rotatable parts = {group_chains, chain_torsions, chain_most, axes, n_values, torsion_moved, moved};
    local int shared[4];
    local Around spheres[64];
    const Structure own = structure_here(rows, steps, listed, bytes);
    const size_t place = (size_t)own.number * most;
    global const real *at = local_at + 3 * place;
    const Point center = point_at(centers + 4 * own.number, 0);
    global const uint *key = keys + 4 * own.number;
    for (int of = get_group_id(0); of < n_trials * n_sides; of += get_num_groups(0)) {
        const int trial = of / n_sides, side = of % n_sides;
        const size_t number = (size_t)own.number * n_trials + trial, slot = number * n_sides + side;
        global const int *start = starts + 65 * own.number;
        Pose pose = {
            n_ligand, start[64], n_members[own.number], poses + 3 * most_moving * slot, at, members + place,
            groups + place, start, places + own.first_atom, residues, radii, centers[4 * own.number + 3], 0};
        int is_found = 0;
        for (int k = (side + n_sides - first_try % n_sides) % n_sides; k < n_tries && !is_found; k += n_sides) {
            const size_t of_try = number * n_tries + k;
            if (!open[of_try]) continue;
            const int try = first_try + k;
            if (get_local_id(0) == 0) shared[3] = atomic_min(found + number, NO_TRY);  // atomic read
            barrier(CLK_LOCAL_MEM_FENCE);
            const int least = shared[3];
            SHARED_BARRIER();
            if (least < try) break;
            for (int i = get_local_id(0); i < pose.n_moving; i += get_local_size(0)) {
                Point p = point_at(at, i);
                if (i < n_ligand) p = placed(p, center, draws + N_RIGID * of_try);
                pose.at[3 * i] = p.x;
                pose.at[3 * i + 1] = p.y;
                pose.at[3 * i + 2] = p.z;
            }
            SHARED_BARRIER();
            pose.turned = 0;
            for (int turn = 0; turn <= MOST_TURNS; ++turn) {
                const Clashes clashes = clashing(&pose, can_turn, bonded, spheres, shared);
                is_found = !clashes.groups && !clashes.stuck;
                if (is_found || clashes.stuck || !turns || turn == MOST_TURNS) break;
                const uint4 counter = {key[2], key[3], trial, 256 * (try * (MOST_TURNS + 1) + turn)};
                const uint bits = philox((uint2)(key[0], key[1]), counter).x;
                int left = below(bits, popcount(clashes.groups)), bit = -1;
                for (; left >= 0; --left)
                    do ++bit; while (!(clashes.groups >> bit & 1));
                turn_group(
                    &pose, group_of[64 * own.number + bit], (uint2)(key[0], key[1]), counter + (uint4)(0, 0, 0, 1),
                    &parts);
                pose.turned |= 1UL << bit;
            }
            if (is_found && get_local_id(0) == 0) {
                atomic_min(found + number, try);
                turned[slot] = pose.turned;
            }
        }
    }
}

// Copies the pose of a trial into the row, or restores the row. One work-item per atom.
kernel void take_pose(
    ENSEMBLE,
    const int most,
    const int most_moving,
    const int n_ligand,
    const int n_trials,
    const int n_sides,
    global const int *restrict found,
    global const int *restrict places,
    global const int *restrict groups,
    global const coordinate *restrict before,
    global const real *restrict local_at,
    global const real *restrict poses,
    global const ulong *restrict turned,
    global const int *restrict chosen)    // (n_rows) trial, -1 for none
{
    const Structure own = structure_here(rows, steps, listed, bytes);
    const int i = get_global_id(0);
    if (i >= own.n_atoms) return;
    const int k = places[own.first_atom + i], trial = chosen[own.number];
    const size_t number = (size_t)own.number * n_trials + max(trial, 0), place = (size_t)own.number * most;
    const size_t slot = number * n_sides + found[number] % n_sides;
    int moves = 0;
    if (trial >= 0 && k >= 0) {
        const int group = groups[place + k];
        moves = k < n_ligand || (group != RIGID && (turned[slot] >> group & 1));
    }
    for (int axis = 0; axis < 3; ++axis) {
        const coordinate was = before[3 * (own.first_atom + i) + axis];
        fine by = 0;
        if (moves) by = (fine)poses[3 * (most_moving * slot + k) + axis] - (fine)local_at[3 * (place + k) + axis];
        own.positions[3 * i + axis] = shifted(was, by, own.step);
    }
}
