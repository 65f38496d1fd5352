// Wide numbers as reals. A work-item a number.
#include "common/real.clh"
#include "common/total.clh"

kernel void narrow(const int n, global const total *restrict wide, global real *restrict narrowed) {
    const int t = get_global_id(0);
    if (t < n) narrowed[t] = (real)wide[t];
}
