// Sums of all structures (third dimension), a group for each chunk of atoms (first) and row (second).
#include "common/real.clh"
#include "engine/arguments.clh"
#include "minimize/measure.clh"

kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void measure(MEASURE_ARGUMENTS(restrict)) {
    SERVES_ROWS(measure)
    local MeasureMemory memory;
    measure_row(get_group_id(1), get_group_id(0), get_global_id(2), &memory, MEASURE_PASSED);
}
