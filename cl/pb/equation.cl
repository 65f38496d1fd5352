// Program of the equation in wide numbers: one build in place of two.
#include "common/real.clh"
#include "pb/outer.cl"
#include "pb/weights.cl"
