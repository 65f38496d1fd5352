// Sums for all structures (third dimension), one group per chunk of atoms (first dimension) and row (second).
#include "common/real.clh"
#include "engine/arguments.clh"
#include "minimize/measure.clh"

kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void measure(
    const int n_atoms,                             // Measured, minimize/measure.clh
    const int n_energies,
    const int n_results,
    const int chunk_size,
    const int n_chunks,
    const int sharing,
    const int counted,
    const real step,
    global const coordinate *restrict positions,
    global const coordinate *restrict base,
    global const real *restrict base_gradient,
    global const real *restrict history,
    global const real *restrict free,
    global const real *restrict results,
    PRECONDITIONER_PARAMETERS
    global fine4 *restrict sums)
{
    SERVES_ROWS(measure)
    local MeasureMemory memory;
    const Measured of = {
        n_atoms, n_energies, n_results, chunk_size, n_chunks, sharing, counted, step, positions, base, base_gradient, history,
        free, results, PRECONDITIONER_GIVEN, sums};
    measure_row(get_group_id(1), get_group_id(0), get_global_id(2), &memory, &of);
}
