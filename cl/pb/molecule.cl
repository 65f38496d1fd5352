// Program of the molecule on the grid: one build in place of three.
#include "common/real.clh"
#include "pb/probes.cl"
#include "pb/near.cl"
#include "pb/surface.cl"
