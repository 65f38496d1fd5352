// check: born --launch group
kernel __attribute__((reqd_work_group_size(32, 1, 1))) void born(
    const int n_atoms, global const float4 *atoms, global const float *scaled, global float *sums)
{
    local float part[32];
    const int i = get_group_id(0), l = get_local_id(0);
    const float rho = atoms[i].w;
    float sum = 0;
    for (int j = l; j < n_atoms; j += 32) {
        if (j == i) continue;
        const float r = distance(atoms[i].xyz, atoms[j].xyz), s = scaled[j];
        const float begin = fmax(rho, fabs(r - s)), end = r + s;
        if (rho >= end) continue;
        const float low = 1 / begin, high = 1 / end;
        float term = low - high + r / 4 * (high * high - low * low) + log(high / low) / (2 * r)
                   + s * s / (4 * r) * (low * low - high * high);
        if (rho < s - r) term += 2 * (1 / rho - low);
        sum += term / 2;
    }
    part[l] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int n = 16; n > 0; n /= 2) {
        if (l < n) part[l] += part[l + n];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (l == 0) sums[i] = part[0];
}
