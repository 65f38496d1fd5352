// Sums at the trial of one structure and the resulting step in one launch, for small molecules on GPUs, whose time is
// dominated by launches. Groups that move atoms wait for groups that compute sums. There are fewer waiting groups than
// compute units, and each unit has room for a group. No other launch may run concurrently, so that all groups make
// progress. Second dimension: rows of sums, first those of blocks, which take longest; the last row moves the atoms.
// First dimension: chunks.
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
    // Written by one group and read by another, hence never cached as constant.
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
    volatile global int *done,               // (1) number of finished parts of sums; initially 0
    global int *done_next)                   // (1) the same for the next launch; reset to 0
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
