// Probes that touch an atom and overlap no other.
#include "common/real.clh"
#include "common/total.clh"
#pragma OPENCL FP_CONTRACT OFF

#if DOUBLES
typedef double4 total4;
#else
typedef real4 total4;
#endif

// A work-item a point of the sphere around an atom. Atoms are in cells as long as the largest radius, or longer.
kernel void find_exposed(
    const int n_atoms,
    const int n_points,
    global const total4 *restrict atoms,   // (n_atoms) x, y, z, radius with the probe's [A]
    global const total4 *restrict sphere,  // (n_points) of radius 1
    global const int *restrict starts,     // (cells + 1) of the atoms of a cell among `members`
    global const int *restrict members,
    const int4 cells,                      // along x, y, z
    const total corner_x,                  // of the first cell [A]
    const total corner_y,
    const total corner_z,
    const total edge,                      // of a cell [A]
    global uchar *restrict exposed)        // (n_atoms, n_points)
{
    const int p = get_global_id(0), a = get_global_id(1);
    if (p >= n_points || a >= n_atoms) return;
    const total4 own = atoms[a], towards = sphere[p];
    const total px = own.w * towards.x + own.x, py = own.w * towards.y + own.y, pz = own.w * towards.z + own.z;
    const int ci = (int)((px - corner_x) / edge), cj = (int)((py - corner_y) / edge);
    const int ck = (int)((pz - corner_z) / edge);
    int is_free = 1;
    for (int k = max(ck - 1, 0); is_free && k <= min(ck + 1, cells.z - 1); ++k) {
        for (int j = max(cj - 1, 0); is_free && j <= min(cj + 1, cells.y - 1); ++j) {
            const int row = (k * cells.y + j) * cells.x;
            const int end = starts[row + min(ci + 1, cells.x - 1) + 1];
            for (int t = starts[row + max(ci - 1, 0)]; is_free && t < end; ++t) {
                const int b = members[t];
                const total x = px - atoms[b].x, y = py - atoms[b].y, z = pz - atoms[b].z;
                is_free = b == a || x * x + y * y + z * z >= atoms[b].w * atoms[b].w;
            }
        }
    }
    exposed[(size_t)a * n_points + p] = is_free;
}
