// Program of the equation in wide numbers, as a single build.
#include "common/real.clh"
#include "pb/outer.cl"
#include "pb/weights.cl"
