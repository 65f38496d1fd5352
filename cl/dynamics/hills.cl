// Adds hills of metadynamics and OPES to the grids of rows; docs/theory/sampling.md. Grids and variables are stored in
// the bytes of all rows.
#include "common/real.clh"
#include "dynamics/bodies.clh"
#include "shared/variables"

#ifndef N_VARIABLES
#error "N_VARIABLES: dimensions of the grid, 1 to 3"
#endif
#define CORNERS (1 << N_VARIABLES)
#define HILL 4  // numbers per hill: up to three coordinates, the height [kcal/mol]

// Position and height of the next hill of each row. One work-item per row.
kernel void measure_hills(
    const int n_rows,
    global const int *restrict walkers,        // (n_rows) rows
    global const int *restrict stopped,        // (all rows) 0 or the reason for stopping
    global const real *restrict temperatures,  // (all rows) [K]
    global const ulong *restrict places,       // (all rows) byte offset of a row's variables
    global const uchar *restrict bytes,        // of all rows
    const fine height,                         // of a hill at zero bias [kcal/mol], or the weight of a Gaussian
    const fine decay,                          // 1 / (bias factor - 1), 0 for hills of constant height; -1 for OPES
    global fine *restrict hills)               // (all rows, HILL)
{
    const int k = get_global_id(0);
    if (k >= n_rows) return;
    const int row = walkers[k];
    global const real *found = (global const real *)(bytes + places[row]);
    global fine *hill = hills + HILL * (size_t)row;
    for (int axis = 0; axis < N_VARIABLES; ++axis) hill[axis] = found[axis];
    const fine bias = found[VARIABLE_REALS - 1];
    // Constant heights are possible also at 0 K.
    const fine full = decay == 0 ? height : height * exp(-bias * decay / (BOLTZMANN * temperatures[row]));
    hill[HILL - 1] = stopped[row] ? (fine)0 : full;
}

// Adds hills to grids. One work-item per node (first dimension) and grid (second).
kernel void add_hills(
    const int n_nodes,
    const uint number,                         // number of hills that each row has after this
    global const int *restrict owners,         // (n_grids) row that contains the grid
    global const int *restrict starts,         // (n_grids + 1) index of the first walker of each grid
    global const int *restrict walkers,        // rows whose hills are added to the grid
    global const ulong *restrict places,       // (all rows) byte offset of a row's grid
    global uchar *restrict bytes,              // of all rows
    global const fine4 *restrict axes,         // (N_VARIABLES) nodes, first node, spacing, 1 if periodic
    global const fine *restrict widths,        // (N_VARIABLES) of hills
    global const fine *restrict hills,         // (all rows, HILL)
    global uint *restrict made)                // (1)
{
    const int node = get_global_id(0), of = get_global_id(1);
    if (node == 0 && of == 0) made[0] = number;
    if (node >= n_nodes) return;
    fine at[N_VARIABLES], inverse[N_VARIABLES], period[N_VARIABLES], spacing[N_VARIABLES];
    int rest = node;
    for (int k = N_VARIABLES - 1; k >= 0; --k) {
        const fine4 axis = axes[k];
        const int n = (int)axis.x;
        at[k] = axis.y + axis.z * (rest % n);
        rest /= n;
        period[k] = axis.w > 0 ? n * axis.z : (fine)0;
        spacing[k] = axis.z;
        inverse[k] = (fine)1 / widths[k];
    }
    fine sums[CORNERS];
    for (int bits = 0; bits < CORNERS; ++bits) sums[bits] = 0;
    for (int w = starts[of]; w < starts[of + 1]; ++w) {
        global const fine *hill = hills + HILL * (size_t)walkers[w];
        fine product = hill[HILL - 1], factor[N_VARIABLES];
        for (int k = 0; k < N_VARIABLES; ++k) {
            fine d = at[k] - hill[k];
            if (period[k] > 0) d -= period[k] * rint(d / period[k]);
            const fine scaled = d * inverse[k];
            product *= exp((fine)-0.5 * scaled * scaled);
            factor[k] = -scaled * inverse[k] * spacing[k];
        }
        for (int bits = 0; bits < CORNERS; ++bits) {
            fine part = product;
            for (int k = 0; k < N_VARIABLES; ++k)
                if (bits >> k & 1) part *= factor[k];
            sums[bits] += part;
        }
    }
    global fine *grid = (global fine *)(bytes + places[owners[of]]) + (size_t)node * CORNERS;
    for (int bits = 0; bits < CORNERS; ++bits) grid[bits] += sums[bits];
}

// Copies the grid of the first walker to all others. One work-item per number (first dimension) and row (second).
kernel void share_grids(
    const int n_numbers,
    global const int *restrict owners,         // (n_rows) row that contains the grid
    global const int *restrict targets,        // (n_rows)
    global const ulong *restrict places,       // (all rows) byte offset of a row's grid
    global uchar *bytes)                       // of all rows
{
    const int i = get_global_id(0), k = get_global_id(1);
    if (i >= n_numbers || owners[k] == targets[k]) return;
    ((global fine *)(bytes + places[targets[k]]))[i] = ((global const fine *)(bytes + places[owners[k]]))[i];
}
