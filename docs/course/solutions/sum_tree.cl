// Each work-item sums numbers with a stride; a tree adds the work-items' sums, one total per group.
enum { GROUP = 64 };
kernel void sum_tree(
    const int n, global const float *values,  // (n)
    global float *sums)                       // (groups)
{
    local float parts[GROUP];
    const int item = get_local_id(0);
    float sum = 0;
    for (int k = get_global_id(0); k < n; k += get_global_size(0)) sum += values[k];
    parts[item] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int half_size = GROUP / 2; half_size > 0; half_size /= 2) {
        if (item < half_size) parts[item] += parts[item + half_size];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (item == 0) sums[get_group_id(0)] = parts[0];
}
