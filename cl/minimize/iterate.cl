// Sums at the trial of one structure and the step from them in one launch, for small molecules on GPUs; there, launches are what
// costs. Groups that move atoms wait for groups that add up. Fewer groups wait than the device has units, and each unit has room
// for a group. Nothing else may run beside this launch, so that all others run meanwhile. Second dimension: rows of sums, first
// of blocks, which take longest; last the groups that move. First dimension: chunks.
#include "common/real.clh"
#include "common/tickets.clh"
#include "minimize/measure.clh"
#include "minimize/step.clh"

typedef union {
    MeasureMemory measure;
    StepMemory step;
} Memory;

kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void iterate(
    const int n_atoms,                       // Measured, minimize/measure.clh
    const int n_energies,
    const int n_results,
    const int chunk_size,
    const int n_chunks,
    const int sharing,
    const int counted,
    const int moved,                         // Stepped, minimize/step.clh
    const int descent,
    const Stopping stopping,
    const real step,
    global const real *restrict free,
    global const real *restrict results,
#if PRECONDITIONED
    const int n_blocks,                      // Preconditioner, minimize/measure.clh
    const int blocks_of_chunk,
    global const int *restrict order,
    global const real *restrict inverses,
    // Written by one group and read by another one, and so never cached as constant.
    global real *softened,
    global real *changes,
#endif
    global fine4 *sums,
    global const fine *restrict before,      // Stepped
    global fine *restrict after,
    global coordinate *positions,
    global coordinate *base,
    global real *base_gradient,
    global real *directions,
    global real *history,
    volatile global int *done,               // (1) parts of sums that are there; 0 at the begin
    global int *done_next)                   // (1) of the next launch, for which it is 0 again
{
    local Memory memory;
    const bool first = get_local_id(0) == 0;
    const int chunk = get_group_id(0), row = M + 1 + sharing - (int)get_group_id(1);
    if (row >= 0) {
        if (chunk >= n_chunks) return;
        const Measured of = {
            n_atoms, n_energies, n_results, chunk_size, n_chunks, sharing, counted, step, positions, base, base_gradient, history,
            free, results, PRECONDITIONER_GIVEN, sums};
        measure_row(row, chunk, 0, &memory.measure, &of);
        PUBLISH();
        if (first) count_done(done, 1);
        return;
    }
    if (chunk * moved >= n_atoms) return;
    if (first && chunk == 0) *done_next = 0;
    const Stepped of = {
        n_atoms, n_energies, n_results, moved, n_chunks, sharing, descent, stopping, step, free, results, sums, before, after,
        positions, base, base_gradient, directions, history, SOFTENED_GIVEN};
    Coordinate own[OWN];
    take_state(&memory.step, 0, &of);
    take_round(own, chunk * moved, 0, &of);
    if (first) wait_for(done, N_PARTS(n_chunks, sharing));
    TAKE_OVER();
    take_softened(own, chunk * moved, 0, &of);
    step_chunk(own, chunk, 0, &memory.step, &of);
}
