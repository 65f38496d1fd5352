// Sums over the atoms of a structure at its trial, from which step.cl decides: minimize/state.clh. A work-group adds up one
// row (second dimension) over a chunk of atoms of one structure (third dimension); BLOCK_GROUPS of them share the blocks.
#include "common/real.clh"
#include "minimize/state.clh"
#include "minimize/sums.clh"
#if PRECONDITIONED
#include "minimize/blocks.clh"
#endif
#include "energy/results.clh"

#if PRECONDITIONED
// P g and z = P y of this group's share of the blocks of a chunk, and the sums z.y and z.g of its work-item.
INLINE fine4 precondition(
    const int share, const int n_chunks, local Vectors *own, const int n_blocks, global const int *order, global const real *inverses, global const real *free,
    global const real *gradient, global const real *base_gradient, global real *softened, global real *changes) {
    const int item = get_local_id(0), chunk = get_group_id(0);
    const int each = (n_blocks + n_chunks - 1) / n_chunks;
    fine4 sum = 0;
    for (int block = chunk * each + share; block < min(n_blocks, (chunk + 1) * each); block += BLOCK_GROUPS) {
        for (int k = item; k < SIDE; k += GROUP) {
            const int atom = order[block * BLOCK + k / 3];
            const size_t at = 3 * (size_t)max(atom, 0) + k % 3;
            own->g[k] = atom < 0 ? (real)0 : free[atom] * bounded(gradient[at]);
            own->y[k] = atom < 0 ? (real)0 : own->g[k] - base_gradient[at];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        multiply(inverses + (size_t)block * SIDE * SIDE, own);
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = item; k < SIDE; k += GROUP) {
            const int atom = order[block * BLOCK + k / 3];
            if (atom < 0) continue;
            const size_t at = 3 * (size_t)atom + k % 3;
            softened[at] = own->u[k];
            changes[at] = own->z[k];
            sum.x += (fine)own->z[k] * own->y[k];
            sum.y += (fine)own->z[k] * own->g[k];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    return sum;
}
#endif

kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void measure(
    const int n_atoms,
    const int n_rows,                              // energies before the Born radii in the results, of atoms or tiles
    const int chunk_size,                          // atoms of a chunk
    const int counted,                             // bits of the terms of the passes that count
    const real step,                               // A of a coordinate's unit
    global const coordinate *restrict positions,   // (n_structures, n_atoms, 3) of the trials
    global const coordinate *restrict base,        // (n_structures, n_atoms, 3)
    global const real *restrict base_gradient,     // (n_structures, n_atoms, 3)
    global const real *restrict history,           // (n_structures, 2 M, n_atoms, 3) minimize/state.clh
    global const real *restrict free,              // (n_atoms) 1, or 0 of atoms that stay
    global const real *restrict results,           // energy/results.clh
#if PRECONDITIONED
    const int n_blocks,
    global const int *restrict order,              // (n_blocks, BLOCK) atoms, -1 for none
    global const real *restrict inverses,          // (n_structures, n_blocks, SIDE, SIDE) by precondition.cl
    global real *restrict softened,                // (n_structures, n_atoms, 3) P g
    global real *restrict changes,                 // (n_structures, n_atoms, 3) z = P y
#endif
    global fine4 *restrict sums)                   // (n_structures, N_PARTS)
{
    local fine4 scratch[GROUP];
#if PRECONDITIONED
    local Vectors vectors;
#endif
    const int item = get_local_id(0), row = get_group_id(1), structure = get_global_id(2);
    const int chunk = get_group_id(0), n_chunks = (n_atoms + chunk_size - 1) / chunk_size;
    const int first = chunk * chunk_size, end = min(n_atoms, first + chunk_size);
    const size_t start = (size_t)structure * 3 * n_atoms;
    const Results own = results_of((global real *)results, structure, n_rows, n_atoms);
    fine4 sum = 0;
    if (row < M) {
        global const real *s = history + history_start(structure, n_atoms) + (size_t)row * 3 * n_atoms;
        global const real *z = s + (size_t)M * 3 * n_atoms;
        for (int k = 3 * first + item; k < 3 * end; k += GROUP) {
            const fine g = free[k / 3] * bounded(own.gradient[k]);
            sum.x += s[k] * g;
            sum.y += z[k] * g;
        }
#if PRECONDITIONED
    } else if (row >= M + 2) {
        sum = precondition(
            row - (M + 2), n_chunks, &vectors, n_blocks, order, inverses + (size_t)structure * n_blocks * SIDE * SIDE, free, own.gradient,
            base_gradient + start, softened + start, changes + start);
#endif
    } else if (row == M) {
        for (int k = 3 * first + item; k < 3 * end; k += GROUP) {
            const fine g = free[k / 3] * bounded(own.gradient[k]), g0 = base_gradient[start + k];
            const fine s = coordinate_difference(positions[start + k], base[start + k], step);
            sum += (fine4)(g * g, g * g0, s * g, s * g0);
        }
    } else {
        for (int atom = first + item; atom < end; atom += GROUP) {
            fine g2 = 0;
            for (int axis = 0; axis < 3; ++axis) {
                const fine g = free[atom] * bounded(own.gradient[3 * (size_t)atom + axis]);
                const size_t k = start + 3 * (size_t)atom + axis;
                const fine s = coordinate_difference(positions[k], base[k], step);
                g2 += g * g;
                sum.w += s * s;
            }
            sum.x = fmax(sum.x, g2);
        }
        const size_t n_energies = (size_t)N_TERMS * n_rows;
        const size_t n_more = (size_t)MORE_TERMS * n_atoms + (size_t)GROUPED_TERMS * n_rows;
        for (size_t k = (size_t)chunk * GROUP + item; k < n_energies + n_more; k += (size_t)n_chunks * GROUP) {
            if (k < n_energies && !(counted >> k % N_TERMS & 1)) continue;
            const fine energy = k < n_energies ? own.energies[k] : own.further[k - n_energies];
            sum.y += energy;
            sum.z += fabs(energy);
        }
    }
    sum = over_group(sum, row == M + 1, scratch);
    if (item == 0) sums[(size_t)structure * N_PARTS(n_chunks) + (size_t)row * n_chunks + chunk] = sum;
}
