// Zeros for a gradient that work-items then add to: a work-item writes one.
#include "common/real.clh"

kernel void clear(const int n, global real *restrict gradient /* (n) */) {
    const int k = get_global_id(0);
    if (k < n) gradient[k] = 0;
}
