// Adds the layers of the kernels of `squares`, as a separate launch. One work-group per tile and conformation, SHARES
// work-items per slot.
#include "common/real.clh"
#include "engine/arguments.clh"
#include "energy/squares/ring.clh"
#include "energy/squares/collect.clh"

kernel __attribute__((reqd_work_group_size(TILE, SHARES, 1)))
void collect(const int n_tiles, const RingSteps ring, LAYERS_PARAMETERS) {
    SERVES_ROWS(collect)
    local real4 scratch[TILE * (SHARES > 2 ? SHARES : 2)];
    const Layers of_launch = LAYERS_GIVEN;
    collect_tile(get_group_id(0), scratch, ring, &of_launch);
}
