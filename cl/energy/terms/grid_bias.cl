// Bias on one to three collective variables, by cubic Hermite interpolation on a grid; docs/theory/sampling.md. One
// work-group per conformation (third dimension), after all other passes; adds to their gradient.
#include "common/real.clh"
#include "common/barrier.clh"
#include "engine/arguments.clh"
#include "energy/results.clh"
#include "shared/variables"
#include "energy/terms/variables/torsion.clh"
#include "energy/terms/variables/distance.clh"
#include "energy/terms/variables/gyration.clh"
#include "energy/terms/variables/rmsd.clh"

#ifndef N_VARIABLES
#error "N_VARIABLES: dimensions of the grid, 1 to 3"
#endif
#define CORNERS (1 << N_VARIABLES)

INLINE fine variable_value(int kind, const Variable *of, fine *kept) {
    switch (kind) {
        case VARIABLE_TORSION: return torsion_value(of, kept);
        case VARIABLE_DISTANCE: return distance_value(of, kept);
        case VARIABLE_GYRATION: return gyration_value(of, kept);
        default: return rmsd_value(of, kept);
    }
}

INLINE void variable_push(int kind, const Variable *of, const fine *kept, fine slope, global real *gradient) {
    switch (kind) {
        case VARIABLE_TORSION: torsion_push(of, kept, slope, gradient); break;
        case VARIABLE_DISTANCE: distance_push(of, kept, slope, gradient); break;
        case VARIABLE_GYRATION: gyration_push(of, kept, slope, gradient); break;
        default: rmsd_push(of, kept, slope, gradient);
    }
}

// Bias energy and its derivatives with respect to the variables. axes: nodes, first node, spacing, 1 if periodic. Each
// node stores the energy and its derivatives with respect to every subset of the variables, times the spacings: bit k
// of the index selects variable k.
INLINE fine grid_energy(const fine *values, global const fine4 *axes, global const fine *grid, fine *slopes) {
    int cells[N_VARIABLES], next[N_VARIABLES], sizes[N_VARIABLES];
    fine basis[N_VARIABLES][2][2], slope_basis[N_VARIABLES][2][2];  // by corner, and by value or derivative
    for (int k = 0; k < N_VARIABLES; ++k) {
        const fine4 axis = axes[k];
        const bool periodic = axis.w > 0;
        const int n = (int)axis.x, n_cells = periodic ? n : n - 1;
        const fine place = (values[k] - axis.y) / axis.z;
        const fine within = periodic ? place - n_cells * floor(place / n_cells) : clamp(place, (fine)0, (fine)n_cells);
        const int cell = min((int)within, n_cells - 1);
        const fine t = within - cell, u = 1 - t;
        const fine moves = periodic || (place >= 0 && place <= n_cells) ? (fine)1 / axis.z : (fine)0;
        cells[k] = cell;
        next[k] = cell + 1 < n ? cell + 1 : 0;
        sizes[k] = n;
        basis[k][0][0] = u * u * (1 + 2 * t);
        basis[k][0][1] = t * u * u;
        basis[k][1][0] = t * t * (1 + 2 * u);
        basis[k][1][1] = -t * t * u;
        slope_basis[k][0][0] = -6 * t * u * moves;
        slope_basis[k][0][1] = u * (u - 2 * t) * moves;
        slope_basis[k][1][0] = 6 * t * u * moves;
        slope_basis[k][1][1] = t * (t - 2 * u) * moves;
    }
    fine energy = 0;
    for (int k = 0; k < N_VARIABLES; ++k) slopes[k] = 0;
    for (int corner = 0; corner < CORNERS; ++corner) {
        size_t node = 0;
        for (int k = 0; k < N_VARIABLES; ++k) node = node * sizes[k] + (corner >> k & 1 ? next[k] : cells[k]);
        for (int bits = 0; bits < CORNERS; ++bits) {
            const fine value = grid[node * CORNERS + bits];
            fine product = 1;
            for (int k = 0; k < N_VARIABLES; ++k) product *= basis[k][corner >> k & 1][bits >> k & 1];
            energy += value * product;
            for (int k = 0; k < N_VARIABLES; ++k) {
                fine by = slope_basis[k][corner >> k & 1][bits >> k & 1];
                for (int l = 0; l < N_VARIABLES; ++l)
                    if (l != k) by *= basis[l][corner >> l & 1][bits >> l & 1];
                slopes[k] += value * by;
            }
        }
    }
    return energy;
}

kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void grid_bias(
    const int n_atoms,
    const int n_energies,                         // energies that precede the Born radii in the results, per atom or per tile
    const int n_results,                          // reals per conformation in the results
    const int term,                               // index in `further`
    const real step,                              // length of a coordinate unit [A]
    global const coordinate *restrict positions,  // (n_conformations, n_atoms, 3)
    global const int4 *restrict variables,        // (N_VARIABLES) kind, first member, members of its first group, members in total
    global const int *restrict members,           // atoms
    global const fine4 *restrict traits,          // of members
    global const fine4 *restrict axes,            // (N_VARIABLES)
    global const fine *restrict grid,             // (nodes, 2^N_VARIABLES) [kcal/mol]
    global real *restrict found,                  // (n_conformations, VARIABLE_REALS) the variables, then the energy
    global real *restrict results)                // energy/results.clh
{
    SERVES_ROWS(grid_bias)
    local fine memory[GROUP];
    const int item = get_local_id(0), conformation = get_global_id(2);
    const Results own = results_of(results, conformation, n_results, n_energies, n_atoms);
    Variable of[N_VARIABLES];
    fine values[N_VARIABLES], slopes[N_VARIABLES], kept[N_VARIABLES][KEPT_OF_VARIABLE];
    for (int k = 0; k < N_VARIABLES; ++k) {
        const int4 given = variables[k];
        of[k].positions = positions + 3 * (size_t)conformation * n_atoms;
        of[k].step = step;
        of[k].n_first = given.z;
        of[k].n_members = given.w;
        of[k].members = members + given.y;
        of[k].traits = traits + given.y;
        of[k].memory = memory;
        values[k] = variable_value(given.x, &of[k], kept[k]);
    }
    const fine energy = grid_energy(values, axes, grid, slopes);
    for (int i = item; i < n_atoms; i += GROUP)
        own.further[(size_t)term * n_atoms + i] = i == members[0] ? (real)energy : (real)0;
    if (item == 0) {
        global real *out = found + VARIABLE_REALS * (size_t)conformation;
        for (int k = 0; k < N_VARIABLES; ++k) out[k] = (real)values[k];
        out[VARIABLE_REALS - 1] = (real)energy;
    }
#if GRADIENT
    for (int k = 0; k < N_VARIABLES; ++k) {
        // The previous variable may contain the same atoms. PoCL 5 crashes if this barrier follows the switch.
        GROUP_BARRIER(GROUP, CLK_GLOBAL_MEM_FENCE);
        variable_push(variables[k].x, &of[k], kept[k], slopes[k], own.gradient);
    }
#endif
}
