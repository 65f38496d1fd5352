// Steps of all structures (third dimension), one group per chunk of atoms.
#include "common/real.clh"
#include "engine/arguments.clh"
#include "minimize/step.clh"

kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void step_on(
    const int n_atoms,                       // Stepped, minimize/step.clh
    const int n_energies,
    const int n_results,
    const int moved,
    const int n_chunks,
    const int sharing,
    const int descent,
    const Stopping stopping,
    const real step,
    global const real *restrict free,
    global const real *restrict results,
    global const fine4 *restrict sums,
    SOFTENED_PARAMETERS
    global const fine *restrict before,
    global fine *restrict after,
    global coordinate *restrict positions,
    global coordinate *restrict base,
    global real *restrict base_gradient,
    global real *restrict directions,
    global real *restrict history)
{
    SERVES_ROWS(step_on)
    local StepMemory memory;
    const int chunk = get_group_id(0), structure = get_global_id(2);
    const Stepped of = {
        n_atoms, n_energies, n_results, moved, n_chunks, sharing, descent, stopping, step, free, results, sums, before, after,
        positions, base, base_gradient, directions, history, SOFTENED_GIVEN};
    Coordinate own[OWN];
    take_state(&memory, structure, &of);
    take_round(own, chunk * moved, structure, &of);
    take_softened(own, chunk * moved, structure, &of);
    step_chunk(own, chunk, structure, &memory, &of);
}
