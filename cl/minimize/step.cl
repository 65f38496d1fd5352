// Steps of all structures (third dimension), a group for each chunk of atoms.
#include "common/real.clh"
#include "engine/arguments.clh"
#include "minimize/step.clh"

kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void step_on(STEP_ARGUMENTS(restrict)) {
    SERVES_ROWS(step_on)
    local StepMemory memory;
    const int chunk = get_group_id(0), structure = get_global_id(2);
    Coordinate own[OWN];
    take_state(&memory, structure, STEP_PASSED);
    take_round(own, chunk * moved, structure, STEP_PASSED);
    take_softened(own, chunk * moved, structure, STEP_PASSED);
    step_chunk(own, chunk, structure, &memory, STEP_PASSED);
}
