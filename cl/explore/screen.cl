// Steric screen of rigid tries: a try stays open if the core of the ligand does not clash with rigid receptor atoms.
#include "common/real.clh"
#include "explore/poses.clh"

// Gathers the members of a row, relative to the first atom of its ligand. One work-item per atom.
kernel void gather(
    ENSEMBLE,
    const int most,                       // maximum number of members of a row
    global const int *restrict members,   // (n_rows, most) atoms
    global const int *restrict n_members, // (n_rows)
    global coordinate *restrict before,   // (n_atoms, 3) previous positions
    global real *restrict local_at)       // (n_rows, most, 3) [A]
{
    const Structure own = structure_here(rows, steps, listed, bytes);
    const int k = get_global_id(0);
    if (k >= own.n_atoms) return;
    for (int axis = 0; axis < 3; ++axis)
        before[3 * (own.first_atom + k) + axis] = own.positions[3 * k + axis];
    if (k >= n_members[own.number]) return;
    const size_t place = (size_t)own.number * most;
    const int atom = members[place + k], origin = members[place];
    for (int axis = 0; axis < 3; ++axis)
        local_at[3 * (place + k) + axis] =
            coordinate_difference(own.positions[3 * atom + axis], own.positions[3 * origin + axis], own.step);
}

// Screens the tries of all trials of a row, which are divided among the work-items.
kernel void screen(
    ENSEMBLE,
    const int most,
    const int n_ligand,
    const int n_tries,                    // of all trials
    global const int *restrict members,
    global const int *restrict n_members,
    global const int *restrict starts,    // (n_rows, 65) first member of each group, then of the rigid atoms
    global const real *restrict local_at,
    global const int *restrict is_core,   // (n_ligand) whether no torsion moves the atom
    global const real *restrict radii,    // (n_atoms of a row) [A]
    global const real *restrict centers,  // (n_rows, 4) centre of the ligand [A], then the overlap factor
    global const real *restrict draws,    // (n_rows, n_tries, N_RIGID)
    global int *restrict open)            // (n_rows, n_tries) 1 for tries to be screened; on return, 1 for those that passed
{
    const Structure own = structure_here(rows, steps, listed, bytes);
    const size_t place = (size_t)own.number * most;
    global const real *at = local_at + 3 * place;
    const Point center = point_at(centers + 4 * own.number, 0);
    const real overlap = centers[4 * own.number + 3];
    real reach = 0, widest = 0;
    for (int i = 0; i < n_ligand; ++i) {
        if (!is_core[i]) continue;
        reach = fmax(reach, squared_distance(center, point_at(at, i)));
        widest = fmax(widest, radii[members[place + i]]);
    }
    reach = sqrt(reach) + (real)0.01;  // margin above the rounding error
    for (int k = get_global_id(0); k < n_tries; k += get_global_size(0)) {
        const size_t number = (size_t)own.number * n_tries + k;
        global const real *move = draws + N_RIGID * number;
        const Point middle = placed(center, center, move);
        int passes = open[number];
        for (int j = starts[65 * own.number + 64]; j < n_members[own.number] && passes; ++j) {
            const Point there = point_at(at, j);
            const real radius = radii[members[place + j]], far = reach + overlap * (widest + radius);
            if (squared_distance(middle, there) > far * far) continue;
            for (int i = 0; i < n_ligand && passes; ++i)
                passes = !is_core[i]
                    || !do_clash(placed(point_at(at, i), center, move), there, radii[members[place + i]], radius, overlap);
        }
        open[number] = passes;
    }
}
