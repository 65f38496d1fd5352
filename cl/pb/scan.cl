// Running sums of counts, in one group. starts : (n + 1), the first is 0; total : (1) sum of all
#include "common/real.clh"

#ifndef GROUP
#error "GROUP: work-items of the group"
#endif

kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void add_up(
    const int n, global const int *restrict counts, global int *restrict starts, global long *restrict total)
{
    local long sums[GROUP];
    const int item = get_local_id(0), chunk = (n + GROUP - 1) / GROUP;
    const int first = min(item * chunk, n), end = min(first + chunk, n);
    long own = 0;
    for (int t = first; t < end; ++t) own += counts[t];
    sums[item] = own;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int step = 1; step < GROUP; step *= 2) {
        const long before = item >= step ? sums[item - step] : 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        sums[item] += before;
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    long sum = sums[item] - own;
    for (int t = first; t < end; ++t) {
        starts[t] = (int)sum;
        sum += counts[t];
    }
    if (item == GROUP - 1) {
        starts[n] = (int)sum;
        total[0] = sum;
    }
}
