// Converts wide numbers to reals. One work-item per number.
#include "common/real.clh"
#include "common/total.clh"

kernel void narrow(const int n, global const total *restrict wide, global real *restrict narrowed) {
    const int t = get_global_id(0);
    if (t < n) narrowed[t] = (real)wide[t];
}
