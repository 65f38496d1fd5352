// One step of Langevin dynamics: kick, half a drift, friction and noise, half a drift (Zhang et al. 2019, "LF-middle");
// without friction it is leapfrog Verlet, with velocities half a step behind. One work-item per cluster. FUSED: on GPUs
// with a suitable fence, the last group of a row also computes the sums of the row.
#include "common/real.clh"
#include "dynamics/constraints.clh"
#include "dynamics/sums.clh"

#ifndef FUSED
#error "FUSED: 1 if the last group of a row adds up what all left, 0 if row_motion follows"
#endif
#if FUSED
#include "common/hand_over.clh"
#endif

typedef struct {
    fine kick;         // duration of the kick [ps]
    fine kept, noise;  // factors, as in `advance`
    fine kt;           // [Da A^2/ps^2]
    int removes;
    Vector center;     // velocity of the row's centre of mass, subtracted if it `removes` [A/ps]
    Stream stream;
} Step;

// Temperature of a row at its current step [K]: from a schedule, interpolated linearly and constant outside, or else
// the temperature of the row.
INLINE fine temperature_of(
    int row, uint steps_done, global const real *temperatures, global const fine *schedule, int n_points) {
    if (!n_points) return temperatures[row];
    int k = 1;
    while (k < n_points && schedule[2 * k] <= steps_done) ++k;
    if (k >= n_points) return schedule[2 * n_points - 1];
    const fine before = schedule[2 * k - 2], from = schedule[2 * k - 1];
    const fine share = fmax((fine)0, ((fine)steps_done - before) / (schedule[2 * k] - before));
    return from + share * (schedule[2 * k + 1] - from);
}

// Moves a cluster by one step. v: returns its new velocities
INLINE void move_cluster(
    Vector *v, const Structure *own, const Cluster *cluster, const Step *step, fine dt, global fine *velocities) {
    Vector moves[MOST_MEMBERS];
    #pragma unroll
    EACH_MEMBER(k, 0, cluster) {
        const fine inverse_mass = cluster->inverse_masses[k];
        v[k] = vector_at(velocities, own->first_atom + cluster->atoms[k]);
        if (step->removes && inverse_mass > 0) v[k] = combined(1, v[k], -1, step->center);
        v[k] = combined(1, v[k], step->kick, acceleration(own, cluster->atoms[k], inverse_mass));
    }
#if MOST_MEMBERS > 1
    Vector bonds[MOST_MEMBERS];
    find_bonds(bonds, own, cluster);
    hold_velocities(v, bonds, cluster);
#endif
    #pragma unroll
    EACH_MEMBER(k, 0, cluster) {
        moves[k] = combined((fine)0.5 * dt, v[k], 0, v[k]);
        if (step->noise > 0) {
            const fine thermal = step->noise * sqrt(step->kt * cluster->inverse_masses[k]);
            v[k] = combined(
                step->kept, v[k], 1, normal_vector(step->stream, cluster->atoms[k], NOISE, thermal));
        }
        moves[k] = combined(1, moves[k], (fine)0.5 * dt, v[k]);
    }
    // A cluster that cannot be moved keeps its positions, and its velocities encode the reason: NaN for forces,
    // infinity for bonds.
    fine sum = 0, sign = 0;
    #pragma unroll
    EACH_MEMBER(k, 0, cluster) sum += fabs(moves[k].x) + fabs(moves[k].y) + fabs(moves[k].z);
    if (!isfinite(sum)) sign = NAN;
#if MOST_MEMBERS > 1
    if (isfinite(sum)) {
        if (!hold_steps(moves, v, bonds, cluster, (fine)1 / dt)) sign = INFINITY;
        #pragma unroll
        EACH_MEMBER(k, 1, cluster)
            bonds[k] = combined(1, bonds[k], 1, combined(1, moves[k], -1, moves[0]));
        hold_velocities(v, bonds, cluster);
    }
#endif
    #pragma unroll
    EACH_MEMBER(k, 0, cluster) {
        const int atom = cluster->atoms[k];
        if (sign != 0) v[k] = (Vector){sign, sign, sign};
        put_vector(velocities, own->first_atom + atom, v[k]);
        if (sign != 0 || !(cluster->inverse_masses[k] > 0)) continue;
        global coordinate *at = own->positions + 3 * (size_t)atom;
        at[0] = shifted(at[0], moves[k].x, own->step);
        at[1] = shifted(at[1], moves[k].y, own->step);
        at[2] = shifted(at[2], moves[k].z, own->step);
    }
}

#if FUSED
// Writes the sums of a group. The last group of the row adds them in order, and stores the results.
INLINE void leave_sums(
    int row, int n_groups, RowSums *own, local SumsMemory *memory, global fine *parts, global int *faults,
    global int *arrivals, int most_groups, const Kept *kept) {
    const int item = get_local_id(0), group = get_group_id(0);
    add_up_group(own, memory);
    parts += (size_t)row * most_groups * SUMS;
    faults += (size_t)row * most_groups;
    if (item < SUMS) parts[group * SUMS + item] = memory->sums[item][0];
    if (item == 0) faults[group] = own->fault;
    if (!group_arrives_last(arrivals + row, n_groups, &memory->is_last) || item > 0) return;
    RowSums sums = NO_SUMS;
    #pragma unroll 8
    for (int k = 0; k < n_groups; ++k) {
        for (int of = 0; of < SUMS; ++of) sums.of[of] += parts[k * SUMS + of];
        sums.fault = min(sums.fault, faults[k]);
    }
    keep_row(row, &sums, 1, kept);
}
#endif

#if FUSED
kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
#else
kernel
#endif
void advance(
    ENSEMBLE,
    BODIES,
    global fine *restrict velocities,           // (n_atoms, 3) [A/ps]
    global const uint *restrict replicas,       // (n_rows) numbers that seed the random numbers
    global const uint *restrict molecules,      // (n_rows) the same for different molecules
    global const real *restrict temperatures,   // (n_rows) [K]
    global const fine *restrict schedule,       // (n_points, 2) step, temperature [K]
    const int n_points,
    const uint seed,
    const fine kept,                            // fraction of a velocity that remains after friction in a step
    const fine noise,                           // fraction of a thermal velocity that is added as noise
#if FUSED
    global fine *parts,                         // (n_rows, most_groups, SUMS) of groups
    global int *faults,                         // (n_rows, most_groups) lowest fault of each group
    global int *arrivals,                       // (n_rows) 0
    const int most_groups,                      // groups per row, at most
#endif
    global fine *center_velocities,             // Kept, dynamics/sums.clh
    global fine *kinetic,
    global int *stopped,
    global int *culprits,
    global uint *done,
    global int *begins,
    const int removes,
    const fine dt)                           // [ps]
{
    const Structure own = row_here(rows, steps, listed, bytes);
    if (stopped[own.number]) return;
#if FUSED
    const int n_groups = (bodies[own.number].y + GROUP - 1) / GROUP;
    if ((int)get_group_id(0) >= n_groups) return;
    local SumsMemory memory;
#endif
    Cluster cluster;
    find_cluster(&cluster, own.number, bodies, starts, members, lengths, inverse_masses);
    const uint steps_done = done[own.number];
    Step step;
    step.kick = begins[own.number] ? (fine)0.5 * dt : dt;
    step.kept = kept;
    step.noise = noise;
    step.kt = KCAL * BOLTZMANN * temperature_of(own.number, steps_done, temperatures, schedule, n_points);
    step.removes = removes;
    step.center = vector_at(center_velocities, own.number);
    step.stream = (Stream){seed, replicas[own.number], molecules[own.number], steps_done};
    Vector v[MOST_MEMBERS];
    if (cluster.count) move_cluster(v, &own, &cluster, &step, dt, velocities);
#if FUSED
    RowSums sums = NO_SUMS;
    #pragma unroll
    EACH_MEMBER(k, 0, &cluster) add_atom(&sums, cluster.atoms[k], cluster.inverse_masses[k], v[k], dt);
    const Kept to_keep = {center_velocities, kinetic, stopped, culprits, done, begins, removes};
    leave_sums(own.number, n_groups, &sums, &memory, parts, faults, arrivals, most_groups, &to_keep);
#endif
}
