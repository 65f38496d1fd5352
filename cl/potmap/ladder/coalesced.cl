// One work-item per eight points of a row, GROUP apart, so that loads and stores of neighbouring work-items are
// coalesced.
#include "common/scalar.clh"
#include "potmap/law.clh"
#include "potmap/ladder/row.clh"

#ifndef GROUP
#error "GROUP: work-items of a group along x"
#endif
#ifndef ROWS
#error "ROWS: rows of a group, its work-items along y"
#endif

kernel __attribute__((reqd_work_group_size(GROUP, ROWS, 1))) void potmap_coalesced(
    MAP_PARAMETERS,  // nx is a multiple of POINTS * GROUP, ny of ROWS: the map is padded
    constant const real4 *restrict atoms)  // (n_atoms) x, y, z [A], charge
{
    const int i = POINTS * GROUP * get_group_id(0) + get_local_id(0), j = get_global_id(1), k = get_global_id(2);
    const real own_y = y[j], own_z = z[k];
    global real *row = map + (k * ny + j) * nx + i;
    real own_x[POINTS], total[POINTS];
    #pragma unroll
    for (int c = 0; c < POINTS; ++c) {
        own_x[c] = x[i + c * GROUP];
        total[c] = row[c * GROUP];
    }
    for (int first = 0; first < n_atoms; first += RUN) {
        real sum[POINTS] = {0};
        add_to_row(own_x, own_y, own_z, atoms, first, min(first + RUN, n_atoms), &law, sum);
        #pragma unroll
        for (int c = 0; c < POINTS; ++c) total[c] += sum[c];
    }
    #pragma unroll
    for (int c = 0; c < POINTS; ++c) row[c * GROUP] = total[c];
}
