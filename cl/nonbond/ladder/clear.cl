// Sets a gradient to zero before work-items add to it; one work-item per number.
#include "common/real.clh"

kernel void clear(const int n, global real *restrict gradient /* (n) */) {
    const int k = get_global_id(0);
    if (k < n) gradient[k] = 0;
}
