// One work-item per eight neighbouring points of a row; their totals are in local memory, to free registers. Point c of
// work-item l has its total in totals[c * GROUP * ROWS + l].
#include "common/scalar.clh"
#include "potmap/law.clh"
#include "potmap/ladder/row.clh"

#ifndef GROUP
#error "GROUP: work-items of a group along x"
#endif
#ifndef ROWS
#error "ROWS: rows of a group, its work-items along y"
#endif

kernel __attribute__((reqd_work_group_size(GROUP, ROWS, 1))) void potmap_shared(
    MAP_PARAMETERS,  // nx is a multiple of POINTS * GROUP, ny of ROWS: the map is padded
    constant const real4 *restrict atoms)  // (n_atoms) x, y, z [A], charge
{
    local real totals[POINTS * GROUP * ROWS];
    const int item = get_local_id(1) * GROUP + get_local_id(0);
    const int i = POINTS * get_global_id(0), j = get_global_id(1), k = get_global_id(2);
    const real own_y = y[j], own_z = z[k];
    global real *row = map + (k * ny + j) * nx + i;
    real own_x[POINTS];
    #pragma unroll
    for (int c = 0; c < POINTS; ++c) {
        own_x[c] = x[i + c];
        totals[c * GROUP * ROWS + item] = row[c];
    }
    for (int first = 0; first < n_atoms; first += RUN) {
        real sum[POINTS] = {0};
        add_to_row(own_x, own_y, own_z, atoms, first, min(first + RUN, n_atoms), &law, sum);
        #pragma unroll
        for (int c = 0; c < POINTS; ++c) totals[c * GROUP * ROWS + item] += sum[c];
    }
    #pragma unroll
    for (int c = 0; c < POINTS; ++c) row[c] = totals[c * GROUP * ROWS + item];
}
