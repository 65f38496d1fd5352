// Probes that touch an atom and overlap no other.
#include "common/real.clh"
#include "pb/cells.clh"
#pragma OPENCL FP_CONTRACT OFF

// Point of the sphere around an atom.
INLINE total4 point_of(total4 atom, total4 towards) {
    const total4 point = {
        atom.w * towards.x + atom.x, atom.w * towards.y + atom.y, atom.w * towards.z + atom.z, 0};
    return point;
}

#define POINTS (PLANES ? 256 : 16)  // that a work-item does, more on CPUs: pele_ocl/pb/probes.py

// Tells if a sphere holds a point, its surface left out.
INLINE int holds(total4 sphere, total4 point) {
    const total x = point.x - sphere.x, y = point.y - sphere.y, z = point.z - sphere.z;
    return x * x + y * y + z * z < sphere.w * sphere.w;
}

// Finds another atom than `own` that holds a point, or -1.
INLINE int holder_of(total4 point, int own, CELLS_TAKEN) {
    const int4 at = cell_of(point.xyz, cells, place);
    for (int k = max(at.z - 1, 0); k <= min(at.z + 1, cells.z - 1); ++k) {
        for (int j = max(at.y - 1, 0); j <= min(at.y + 1, cells.y - 1); ++j) {
            const int row = (k * cells.y + j) * cells.x;
            const int end = cell_starts[row + min(at.x + 1, cells.x - 1) + 1];
            for (int t = cell_starts[row + max(at.x - 1, 0)]; t < end; ++t) {
                if (cell_members[t] != own && holds(cell_spheres[cell_members[t]], point)) return cell_members[t];
            }
        }
    }
    return -1;
}

// Marks the points that no other atom holds, and counts them. A work-item does some points of the sphere around an
// atom; the atom that holds one holds its neighbours, too, as a rule. Atoms have radii with the probe's.
kernel void find_exposed(
    const int n_points,
    const int n_chunks,  // of the points of an atom
    CELLS,
    global const total4 *restrict sphere,      // (n_points) of radius 1
    global const uchar *restrict has_points,   // (atoms)
    global uchar *restrict exposed,            // (atoms, n_points)
    global int *restrict counts)               // (atoms, n_chunks)
{
    const int chunk = get_global_id(0), first = POINTS * chunk, a = get_global_id(1);
    if (chunk >= n_chunks || a >= cells.w) return;
    int holder = -1, count = 0;
    if (has_points[a]) {
        for (int p = first; p < min(first + POINTS, n_points); ++p) {
            const total4 point = point_of(cell_spheres[a], sphere[p]);
            if (holder < 0 || !holds(cell_spheres[holder], point)) holder = holder_of(point, a, CELLS_PASSED);
            exposed[(size_t)a * n_points + p] = holder < 0;
            count += holder < 0;
        }
    }
    counts[(size_t)a * n_chunks + chunk] = count;
}

// Writes the probes, in the order of the atoms and of the points. A work-item does as many points.
kernel void list_exposed(
    const int n_points,
    const int n_chunks,
    CELLS,
    global const total4 *restrict sphere,
    global const uchar *restrict exposed,
    global const int *restrict starts,  // (atoms * n_chunks + 1) of each work-item's among the probes
    const total probe,
    global total4 *restrict probes)
{
    const int chunk = get_global_id(0), first = POINTS * chunk, a = get_global_id(1);
    if (chunk >= n_chunks || a >= cells.w) return;
    int at = starts[(size_t)a * n_chunks + chunk];
    if (at == starts[(size_t)a * n_chunks + chunk + 1]) return;
    for (int p = first; p < min(first + POINTS, n_points); ++p) {
        if (!exposed[(size_t)a * n_points + p]) continue;
        total4 point = point_of(cell_spheres[a], sphere[p]);
        point.w = probe;
        probes[at++] = point;
    }
}
