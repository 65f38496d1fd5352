// Velocities at the start, in reports and after an exchange. One work-item per cluster.
#include "common/real.clh"
#include "dynamics/constraints.clh"

// Draws velocities from the Maxwell-Boltzmann distribution at the temperature of each row.
kernel void draw_velocities(
    ENSEMBLE,
    BODIES,
    global fine *restrict velocities,          // (n_atoms, 3) [A/ps]
    global const uint *restrict replicas,      // (n_rows) numbers that seed the random numbers
    global const uint *restrict molecules,     // (n_rows) the same for different molecules
    global const uint *restrict done,          // (n_rows) steps made
    global const real *restrict temperatures,  // (n_rows) [K]
    const uint seed)
{
    const Structure own = row_here(rows, steps, listed, bytes);
    Cluster cluster;
    find_cluster(&cluster, own.number, bodies, starts, members, lengths, inverse_masses);
    if (!cluster.count) return;
    const fine kt = KCAL * BOLTZMANN * temperatures[own.number];
    const Stream stream = {seed, replicas[own.number], molecules[own.number], done[own.number]};
    Vector v[MOST_MEMBERS];
    #pragma unroll
    EACH_MEMBER(k, 0, &cluster) {
        const fine thermal = sqrt(kt * cluster.inverse_masses[k]);
        v[k] = normal_vector(stream, cluster.atoms[k], VELOCITIES, thermal);
    }
#if MOST_MEMBERS > 1
    Vector bonds[MOST_MEMBERS];
    find_bonds(bonds, &own, &cluster);
    hold_velocities(v, bonds, &cluster);
#endif
    #pragma unroll
    EACH_MEMBER(k, 0, &cluster) put_vector(velocities, own.first_atom + cluster.atoms[k], v[k]);
}

// Computes the velocities at the positions if the stored ones are half a step behind.
kernel void present_velocities(
    ENSEMBLE,
    BODIES,
    global const fine *restrict velocities,  // (n_atoms, 3) [A/ps]
    global const int *restrict begins,       // (n_rows) whether velocities are those at the positions
    global fine *restrict present,           // (n_atoms, 3) [A/ps]
    const fine late)                         // time by which they are behind [ps]
{
    const Structure own = row_here(rows, steps, listed, bytes);
    Cluster cluster;
    find_cluster(&cluster, own.number, bodies, starts, members, lengths, inverse_masses);
    if (!cluster.count) return;
    const fine kick = begins[own.number] ? 0 : late;
    Vector v[MOST_MEMBERS];
    #pragma unroll
    EACH_MEMBER(k, 0, &cluster) {
        v[k] = vector_at(velocities, own.first_atom + cluster.atoms[k]);
        if (kick > 0) v[k] = combined(1, v[k], kick, acceleration(&own, cluster.atoms[k], cluster.inverse_masses[k]));
    }
#if MOST_MEMBERS > 1
    Vector bonds[MOST_MEMBERS];
    find_bonds(bonds, &own, &cluster);
    hold_velocities(v, bonds, &cluster);
#endif
    #pragma unroll
    EACH_MEMBER(k, 0, &cluster) put_vector(present, own.first_atom + cluster.atoms[k], v[k]);
}

// Scales velocities to the new temperature of a row.
kernel void rescale(
    ENSEMBLE,
    BODIES,
    global fine *restrict velocities,         // (n_atoms, 3) [A/ps]
    global fine *restrict center_velocities,  // (n_rows, 3) [A/ps]
    global const real *restrict scales)       // (n_rows) velocity scaling factors
{
    const Structure own = row_here(rows, steps, listed, bytes);
    Cluster cluster;
    find_cluster(&cluster, own.number, bodies, starts, members, lengths, inverse_masses);
    const fine scale = scales[own.number];
    if (get_global_id(0) == 0) {
        const Vector center = vector_at(center_velocities, own.number);
        put_vector(center_velocities, own.number, combined(scale, center, 0, center));
    }
    #pragma unroll
    EACH_MEMBER(k, 0, &cluster) {
        const size_t atom = own.first_atom + cluster.atoms[k];
        const Vector v = vector_at(velocities, atom);
        put_vector(velocities, atom, combined(scale, v, 0, v));
    }
}
