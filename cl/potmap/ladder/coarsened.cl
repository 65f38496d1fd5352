// One work-item per four neighbouring points of a row (thread coarsening): dy^2 + dz^2 is computed once for all four.
#include "common/scalar.clh"
#include "potmap/law.clh"
#include "potmap/ladder/row.clh"

kernel void potmap_coarsened(
    MAP_PARAMETERS,  // nx is a multiple of POINTS: the map is padded
    constant const real4 *restrict atoms)  // (n_atoms) x, y, z [A], charge
{
    const int i = POINTS * get_global_id(0), j = get_global_id(1), k = get_global_id(2);
    if (i >= nx || j >= ny) return;
    const real own_y = y[j], own_z = z[k];
    global real *row = map + (k * ny + j) * nx + i;
    real own_x[POINTS], total[POINTS];
    #pragma unroll
    for (int c = 0; c < POINTS; ++c) {
        own_x[c] = x[i + c];
        total[c] = row[c];
    }
    for (int first = 0; first < n_atoms; first += RUN) {
        real sum[POINTS] = {0};
        add_to_row(own_x, own_y, own_z, atoms, first, min(first + RUN, n_atoms), &law, sum);
        #pragma unroll
        for (int c = 0; c < POINTS; ++c) total[c] += sum[c];
    }
    #pragma unroll
    for (int c = 0; c < POINTS; ++c) row[c] = total[c];
}
