// Program of the molecule on the grid, as a single build.
#include "common/real.clh"
#include "pb/probes.cl"
#include "pb/near.cl"
#include "pb/surface.cl"
