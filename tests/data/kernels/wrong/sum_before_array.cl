// check: sum -> out-of-bounds
kernel void sum_before_array(global const float *values, global float *sums, int n) {
    local float part[64];
    const int l = get_local_id(0), i = get_global_id(0);
    part[l] = i < n ? values[i] : 0.0f;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int w = 32; w > 0; w /= 2) { if (l < w) part[l] += part[l + w]; barrier(CLK_LOCAL_MEM_FENCE); }
    if (l == 0) sums[get_group_id(0)] = part[0];
    if (i == 0) sums[-3] = 1;
}
