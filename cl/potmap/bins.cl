// Sorts atoms into the bins of potmap/cutoff.cl (potmap/sort.clh). add_parts and begin_cells work for any kind of
// cells.
#include "common/real.clh"
#include "potmap/sort.clh"

#ifndef GROUP
#error "GROUP: work-items of begin_cells"
#endif

// Assigns atoms to bins and counts them. One work-item per part of the atoms.
kernel void count_bins(
    const int n_atoms, const int per_part,
    const int4 n_bins,                      // number of bins along x, y, z
    const real4 corner,                     // lowest corner of the first bin [A]; w = edge of a bin
    POSITIONS,
    global int *restrict counts,            // (n_parts, n_bins z, y, x), initially 0
    global int2 *restrict homes)            // (n_atoms) bin of an atom, or -1 outside; its index within its part and bin
{
    const int part = get_global_id(0), n_cells = n_bins.x * n_bins.y * n_bins.z;
    const int end = min(n_atoms, (part + 1) * per_part);
    global int *own = counts + (size_t)part * n_cells;
    for (int atom = part * per_part; atom < end; ++atom) {
        const int x = (int)floor((ROUNDED(atom) - corner.x + REST_OF(atom)) / corner.w);
        const int y = (int)floor((ROUNDED(n_atoms + atom) - corner.y + REST_OF(n_atoms + atom)) / corner.w);
        const int z = (int)floor((ROUNDED(2 * n_atoms + atom) - corner.z + REST_OF(2 * n_atoms + atom)) / corner.w);
        const bool inside = x >= 0 && y >= 0 && z >= 0 && x < n_bins.x && y < n_bins.y && z < n_bins.z;
        const int bin = (z * n_bins.y + y) * n_bins.x + x;
        homes[atom] = inside ? (int2)(bin, own[bin]++) : (int2)(-1, 0);
    }
}

// Prefix sums of the counts over the parts. One work-item per cell.
kernel void add_parts(
    const int n_parts, const int n_cells,
    global int *restrict counts,            // (n_parts, n_cells) input: atoms; output: atoms of the cell in previous parts
    global int *restrict totals)            // (n_cells) atoms of each cell
{
    const int cell = get_global_id(0);
    if (cell >= n_cells) return;
    int before = 0;
    for (int part = 0; part < n_parts; ++part) {
        global int *own = counts + (size_t)part * n_cells + cell;
        const int count = *own;
        *own = before;
        before += count;
    }
    totals[cell] = before;
}

// Index of the first atom of each cell. A single group; each of its work-items scans a run of cells.
kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void begin_cells(
    const int n_cells,
    global const int *restrict totals,      // (n_cells)
    global int *restrict starts)            // (n_cells + 1)
{
    local int sums[GROUP];
    const int item = get_local_id(0), run = (n_cells + GROUP - 1) / GROUP;
    const int first = min(n_cells, item * run), end = min(n_cells, first + run);
    int sum = 0;
    for (int cell = first; cell < end; ++cell) sum += totals[cell];
    sums[item] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    int before = 0;
    for (int other = 0; other < item; ++other) before += sums[other];
    for (int cell = first; cell < end; ++cell) {
        starts[cell] = before;
        before += totals[cell];
    }
    if (item == GROUP - 1) starts[n_cells] = before;
}

// Writes each atom to its sorted position. One work-item per atom.
kernel void sort_bins(
    const int n_atoms, const int per_part, const int4 n_bins,
    POSITIONS,
    global const real *restrict charges,    // (n_atoms)
    global const int2 *restrict homes,
    global const int *restrict counts,
    global const int *restrict starts,
    global real4 *restrict atoms,           // (n_atoms) x, y, z, charge, sorted by bin
    global real4 *restrict atom_rests)      // (n_atoms) rounding errors of x, y, z, if RESTS
{
    const int atom = get_global_id(0);
    if (atom >= n_atoms || homes[atom].x < 0) return;
    const int n_cells = n_bins.x * n_bins.y * n_bins.z;
    const int to = place_of(atom, homes[atom].x, homes[atom].y, per_part, n_cells, counts, starts);
    const int y = n_atoms + atom, z = n_atoms + y;
    atoms[to] = (real4)(ROUNDED(atom), ROUNDED(y), ROUNDED(z), charges[atom]);
#if RESTS
    atom_rests[to] = (real4)(REST_OF(atom), REST_OF(y), REST_OF(z), 0);
#endif
}
