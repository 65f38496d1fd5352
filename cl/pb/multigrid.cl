// Program of V-cycles and of the operator, as a single build.
#include "common/real.clh"
#include "pb/smooth.cl"
#include "pb/transfer.cl"
#include "pb/coarsen.cl"
#include "pb/tail.cl"
