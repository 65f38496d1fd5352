// A step of Langevin dynamics in the order kick, half a drift, friction and noise, half a drift (Zhang et al. 2019,
// "LF-middle"); without friction it is velocity Verlet whose velocities are half a step late. A work-item a cluster.
#include "common/real.clh"
#include "dynamics/constraints.clh"

// Temperature of a row at its step: of a schedule, linear between its points and constant beyond them, or else its own
// [K].
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

kernel void advance(
    ENSEMBLE,
    BODIES(restrict),
    global fine *restrict velocities,           // (n_atoms, 3) [A/ps]
    global const fine *restrict center_velocities,  // (n_rows, 3) [A/ps]
    global const int *restrict stopped,         // (n_rows) 0, or why a row stopped
    global const uint *restrict done,           // (n_rows) steps made
    global const int *restrict begins,          // (n_rows) if velocities are of the positions, so that half a kick is due
    global const uint *restrict replicas,       // (n_rows) by which random numbers are drawn
    global const uint *restrict molecules,      // (n_rows) the same of different molecules
    global const real *restrict temperatures,   // (n_rows) [K]
    global const fine *restrict schedule,       // (n_points, 2) step, temperature [K]
    const int n_points,
    const int removes,                          // if the centre of mass stays at rest
    const uint seed,
    const fine dt,                              // [ps]
    const fine kept,                            // share of a velocity that friction leaves in a step
    const fine noise)                           // share of a thermal velocity that takes its place
{
    const Structure own = row_here(ENSEMBLE_PASSED);
    if (stopped[own.number]) return;
    Cluster cluster;
    find_cluster(&cluster, own.number, BODIES_PASSED);
    if (!cluster.count) return;
    const uint steps_done = done[own.number];
    const Stream stream = {seed, replicas[own.number], molecules[own.number], steps_done};
    const fine kick = begins[own.number] ? (fine)0.5 * dt : dt;
    const fine kt = KCAL * BOLTZMANN * temperature_of(own.number, steps_done, temperatures, schedule, n_points);
    const Vector center = vector_at(center_velocities, own.number);

    Vector v[MOST_MEMBERS], moves[MOST_MEMBERS];
    for (int k = 0; k < cluster.count; ++k) {
        const fine inverse_mass = cluster.inverse_masses[k];
        v[k] = vector_at(velocities, own.first_atom + cluster.atoms[k]);
        if (removes && inverse_mass > 0) v[k] = combined(1, v[k], -1, center);
        v[k] = combined(1, v[k], kick, acceleration(&own, cluster.atoms[k], inverse_mass));
    }
#if MOST_MEMBERS > 1
    Vector bonds[MOST_MEMBERS];
    find_bonds(bonds, &own, &cluster);
    hold_velocities(v, bonds, &cluster);
#endif
    for (int k = 0; k < cluster.count; ++k) {
        moves[k] = combined((fine)0.5 * dt, v[k], 0, v[k]);
        if (noise > 0) {
            const fine thermal = noise * sqrt(kt * cluster.inverse_masses[k]);
            v[k] = combined(
                kept, v[k], 1, normal_vector(stream, cluster.atoms[k], NOISE, thermal));
        }
        moves[k] = combined(1, moves[k], (fine)0.5 * dt, v[k]);
    }
    // A cluster that cannot be moved stays, and its velocities say why: NaN for forces, infinity for bonds.
    fine sum = 0, sign = 0;
    for (int k = 0; k < cluster.count; ++k) sum += fabs(moves[k].x) + fabs(moves[k].y) + fabs(moves[k].z);
    if (!isfinite(sum)) sign = NAN;
#if MOST_MEMBERS > 1
    if (isfinite(sum)) {
        if (!hold_steps(moves, v, bonds, &cluster, (fine)1 / dt)) sign = INFINITY;
        for (int k = 1; k < cluster.count; ++k)
            bonds[k] = combined(1, bonds[k], 1, combined(1, moves[k], -1, moves[0]));
        hold_velocities(v, bonds, &cluster);
    }
#endif
    for (int k = 0; k < cluster.count; ++k) {
        const int atom = cluster.atoms[k];
        if (sign != 0) {
            const Vector bad = {sign, sign, sign};
            put_vector(velocities, own.first_atom + atom, bad);
            continue;
        }
        put_vector(velocities, own.first_atom + atom, v[k]);
        if (!(cluster.inverse_masses[k] > 0)) continue;
        global coordinate *at = own.positions + 3 * (size_t)atom;
        at[0] = shifted(at[0], moves[k].x, own.step);
        at[1] = shifted(at[1], moves[k].y, own.step);
        at[2] = shifted(at[2], moves[k].z, own.step);
    }
}
