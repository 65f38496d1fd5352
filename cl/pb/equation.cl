// Program of the equation in wide numbers: one build in place of two.
#include "pb/outer.cl"
#include "pb/weights.cl"
