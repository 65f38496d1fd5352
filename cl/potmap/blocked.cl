// Each work-item sums a block of points (potmap/block.clh) over all atoms. The group loads each run of atoms into local
// memory; a group of one work-item, as on CPUs, reads them from global memory.
#include "common/real.clh"
#include "potmap/law.clh"
#include "potmap/block.clh"

#ifndef UNROLL
#error "UNROLL: atoms in a turn of the loop over a run"
#endif

#define GROUP (GROUP_X * GROUP_Y * GROUP_Z)

kernel __attribute__((reqd_work_group_size(GROUP_X, GROUP_Y, GROUP_Z))) void potmap_blocked(
    MAP_PARAMETERS,  // nx, ny, nz are multiples of the group's points: the map is padded
    global const real4 *restrict atoms)  // (n_atoms) x, y, z [A], charge
{
#if GROUP > 1
    local real4 run[RUN];
    const int item = (get_local_id(2) * GROUP_Y + get_local_id(1)) * GROUP_X + get_local_id(0);
#endif
    Block block;
    load_coordinates(&block.of, x, y, z);
    for (int first = 0; first < n_atoms; first += RUN) {
        const int count = min(RUN, n_atoms - first);
#if GROUP > 1
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int a = item; a < count; a += GROUP) run[a] = atoms[first + a];
        barrier(CLK_LOCAL_MEM_FENCE);
#else
        global const real4 *run = atoms + first;
#endif
        Sums sums;
        clear(&sums);
        #pragma unroll UNROLL
        for (int a = 0; a < count; ++a) add_atom(&block, run[a], (real4)0, &law, &sums);
        // Totals of the runs are kept in the map: in registers they would need as many as the sums.
        add_to_map(&sums, nx, ny, nz, map);
    }
}
