// A work-group owns atom i; its work-items stride over the others, and a tree adds their sums.
enum { GROUP = 64 };
kernel void pair_group(
    const int n, global const float4 *atoms,  // (n) x, y, z, scaled radius s [A]
    global const float *rho,                  // (n) radius less 0.09 [A]
    global float *integrals)                  // (n) Born integrals [1/A]
{
    local float sums[GROUP];
    const int i = get_group_id(0), item = get_local_id(0);
    float sum = 0;
    for (int j = item; j < n; j += GROUP) {
        const float4 d = atoms[i] - atoms[j];
        if (j != i) sum += hct(sqrt(d.x * d.x + d.y * d.y + d.z * d.z), rho[i], atoms[j].w);
    }
    sums[item] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int half_size = GROUP / 2; half_size > 0; half_size /= 2) {
        if (item < half_size) sums[item] += sums[item + half_size];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (item == 0) integrals[i] = sums[0];
}
