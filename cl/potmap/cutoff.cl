// Each work-item sums a block of points (potmap/block.clh) over the atoms near it. Atoms are sorted into cubic bins.
// All groups use one list of bins, given relative to the bin that contains the centre of their points. The list covers
// all atoms within the cutoff for any position of the centre in that bin.
#include "common/real.clh"
#include "potmap/near.clh"
#include "potmap/law.clh"
#include "potmap/block.clh"

// Lowest and highest corner of a box; w = 0.
typedef struct { real4 low, high; } Box;

// Squared distance between a box and another one with these corners [A^2].
INLINE real gap2(const Box *box, real4 low, real4 high) {
    const real4 gap = fmax(fmax(low - box->high, box->low - high), (real4)0);
    return gap.x * gap.x + gap.y * gap.y + gap.z * gap.z;
}

#define FIRST(axis) (get_group_id(axis) * GROUP_POINTS_##axis)
#define GROUP_POINTS_0 (POINTS_X * GROUP_X * WIDTH)
#define GROUP_POINTS_1 GROUP_Y
#define GROUP_POINTS_2 (POINTS_Z * GROUP_Z)

#if RESTS
#define REST_OF(a) rests[a]
#else
#define REST_OF(a) (real4)0
#endif

kernel __attribute__((reqd_work_group_size(GROUP_X, GROUP_Y, GROUP_Z))) void potmap_cutoff(
    MAP_PARAMETERS,  // nx, ny, nz are multiples of the group's points
    global const real *restrict rest_x,       // (nx) rounding errors of the coordinates of the points, if RESTS [A]
    global const real *restrict rest_y,
    global const real *restrict rest_z,
    const real4 corner,                       // lowest corner of the first bin [A]; w = edge of a bin
    const int4 n_bins,                        // number of bins along x, y, z
    const int n_offsets,
    global const int4 *restrict offsets,      // (n_offsets) bins to visit, relative to the group's own
    global const int *restrict middle_x,      // (groups along x) bin of the centre of a group's points
    global const int *restrict middle_y,
    global const int *restrict middle_z,
    const real4 lowest,                       // corners of the box of all atoms [A]; w = 0
    const real4 highest,
    global const int *restrict starts,        // (n_bins z, y, x; 1) index of each bin's first atom
    global const real4 *restrict atoms,       // (n_atoms) x, y, z [A], charge
    global const real4 *restrict rests)       // (n_atoms) rounding errors of x, y, z, if RESTS
{
    Block block;
    load_coordinates(&block.of, x, y, z);
#if RESTS
    load_coordinates(&block.rest, rest_x, rest_y, rest_z);
#endif
    const Box points = {
        (real4)(x[FIRST(0)], y[FIRST(1)], z[FIRST(2)], 0),
        (real4)(x[FIRST(0) + GROUP_POINTS_0 - 1], y[FIRST(1) + GROUP_POINTS_1 - 1], z[FIRST(2) + GROUP_POINTS_2 - 1], 0),
    };
    // Widens the cutoff by more than the rounding error of a box; the test of the points is exact.
    const real reach2 = law.cutoff2 * (real)1.001;
    if (gap2(&points, lowest, highest) > reach2) return;
    const int4 middle = (int4)(middle_x[get_group_id(0)], middle_y[get_group_id(1)], middle_z[get_group_id(2)], 0);
    Sums total, sums;
    clear(&total);
    for (int o = 0; o < n_offsets; ++o) {
        const int4 bin = middle + offsets[o];
        const real4 low = (real4)(corner.x + bin.x * corner.w, corner.y + bin.y * corner.w, corner.z + bin.z * corner.w, 0);
        if (gap2(&points, low, low + corner.w) > reach2) continue;
        const int bin_index = (bin.z * n_bins.y + bin.y) * n_bins.x + bin.x, end = starts[bin_index + 1];
        clear(&sums);
        for (int a = starts[bin_index], count = 1; a < end; ++a, ++count) {
            const real4 atom = atoms[a], at = (real4)(atom.x, atom.y, atom.z, 0);
            if (gap2(&points, at, at) > reach2) continue;
            add_atom(&block, atom, REST_OF(a), &law, &sums);
            if (count % RUN == 0) {
                add_sums(&total, &sums);
                clear(&sums);
            }
        }
        add_sums(&total, &sums);
    }
    add_to_map(&total, nx, ny, nz, map);
}
