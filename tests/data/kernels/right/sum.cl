// check: sum
kernel __attribute__((reqd_work_group_size(64, 1, 1))) void tree(
    const int n, global const float *values, global float *sums)
{
    local float part[64];
    const int i = get_global_id(0), l = get_local_id(0);
    part[l] = i < n ? values[i] : 0;
    for (int half_ = 32; half_ > 0; half_ /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (l < half_) part[l] += part[l + half_];
    }
    if (l == 0) sums[get_group_id(0)] = part[0];
}
