// Motion of a row as a whole: sums over its atoms, for steps that do not compute them. One work-group of GROUP
// work-items per row.
#include "common/real.clh"
#include "dynamics/sums.clh"

kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void row_motion(
    ENSEMBLE,
    BODIES,
    global const fine *restrict velocities,    // (n_atoms, 3) [A/ps]
    const int counts,                          // whether a step was made
    global fine *center_velocities,            // Kept, dynamics/sums.clh
    global fine *kinetic,
    global int *stopped,
    global int *culprits,
    global uint *done,
    global int *begins,
    const int removes,
    const fine dt)                          // [ps]
{
    const Structure own = row_here(rows, steps, listed, bytes);
    if (stopped[own.number]) return;
    local SumsMemory memory;
    const size_t first_mass = bodies[own.number].z;
    RowSums sums = NO_SUMS;
    for (int i = get_local_id(0); i < own.n_atoms; i += GROUP)
        add_atom(&sums, i, inverse_masses[first_mass + i], vector_at(velocities, own.first_atom + i), dt);
    add_up_group(&sums, &memory);
    const Kept to_keep = {center_velocities, kinetic, stopped, culprits, done, begins, removes};
    if (get_local_id(0) == 0) keep_row(own.number, &sums, counts, &to_keep);
}
