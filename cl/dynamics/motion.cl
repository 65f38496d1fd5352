// Motion of a row as a whole after a step: kinetic energy, velocity of the centre of mass, and what is wrong with it. A
// work-group a row, by GROUP work-items.
#include "common/real.clh"
#include "dynamics/bodies.clh"
#include "shared/halt"

#ifndef GROUP
#error "GROUP: work-items of a work-group, a power of two"
#endif

#define MOST_MOVE (fine)1    // that an atom goes in a step [A]
#define NO_FAULT 0x7fffffff
#define FAULTS 4             // a fault is FAULTS times an atom plus a reason
#define SUMS 5

kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void row_motion(
    ENSEMBLE,
    BODIES(restrict),
    global const fine *restrict velocities,    // (n_atoms, 3) [A/ps]
    global fine *restrict center_velocities,   // (n_rows, 3) [A/ps]
    global fine *restrict kinetic,             // (n_rows) [kcal/mol]
    global int *restrict stopped,              // (n_rows) 0, or why a row stopped
    global int *restrict culprits,             // (n_rows) its atom
    global uint *restrict done,                // (n_rows) steps made
    global int *restrict begins,               // (n_rows) 0 once a step was made
    const int removes,                         // if the motion of the centre does not count
    const int counts,                          // if a step was made
    const fine dt)                             // [ps]
{
    const Structure own = row_here(ENSEMBLE_PASSED);
    if (stopped[own.number]) return;
    const int item = get_local_id(0);
    const size_t first_mass = bodies[own.number].z;
    fine sum[SUMS] = {0, 0, 0, 0, 0};  // momentum, mass, twice the kinetic energy
    int fault = NO_FAULT;
    for (int i = item; i < own.n_atoms; i += GROUP) {
        const fine inverse_mass = inverse_masses[first_mass + i];
        if (!(inverse_mass > 0)) continue;
        const fine mass = (fine)1 / inverse_mass;
        const Vector v = vector_at(velocities, own.first_atom + i);
        const fine v2 = dot_product(v, v);
        sum[0] += mass * v.x;
        sum[1] += mass * v.y;
        sum[2] += mass * v.z;
        sum[3] += mass;
        sum[4] += mass * v2;
        const int reason = isnan(v2) ? HALT_FORCES : isinf(v2) ? HALT_BONDS : v2 * dt * dt > MOST_MOVE ? HALT_SPEED : 0;
        if (reason) fault = min(fault, FAULTS * i + reason);
    }

    local fine sums[SUMS][GROUP];
    local int faults[GROUP];
    for (int k = 0; k < SUMS; ++k) sums[k][item] = sum[k];
    faults[item] = fault;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int half_size = GROUP / 2; half_size > 0; half_size /= 2) {
        if (item < half_size) {
            for (int k = 0; k < SUMS; ++k) sums[k][item] += sums[k][item + half_size];
            faults[item] = min(faults[item], faults[item + half_size]);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (item > 0) return;
    const Vector momentum = {sums[0][0], sums[1][0], sums[2][0]};
    const fine mass = sums[3][0], of_center = mass > 0 && removes ? dot_product(momentum, momentum) / mass : 0;
    put_vector(center_velocities, own.number, combined(mass > 0 ? (fine)1 / mass : 0, momentum, 0, momentum));
    kinetic[own.number] = (fine)0.5 / KCAL * (sums[4][0] - of_center);
    if (counts) {
        done[own.number] += 1;
        begins[own.number] = 0;
    }
    if (faults[0] == NO_FAULT) return;
    stopped[own.number] = faults[0] % FAULTS;
    culprits[own.number] = faults[0] / FAULTS;
}
