// Program of V-cycles and of the operator: one build in place of four.
#include "common/real.clh"
#include "pb/smooth.cl"
#include "pb/transfer.cl"
#include "pb/coarsen.cl"
#include "pb/tail.cl"
