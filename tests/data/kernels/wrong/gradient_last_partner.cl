// check: nonbond --launch atom -> off-by-one
kernel void rows(
    const int n_atoms, global const int *starts, global const int *partners, global const float4 *atoms,
    global const float *sigma, global const float *epsilon, global float *gradient)
{
    const int i = get_global_id(0);
    if (i >= n_atoms) return;
    float3 sum = 0;
    for (int at = starts[i]; at < starts[i + 1] - 1; ++at) {
        const int j = partners[at];
        const float3 d = atoms[i].xyz - atoms[j].xyz;
        const float r2 = dot(d, d), s = (sigma[i] + sigma[j]) / 2, s2 = s * s / r2, s6 = s2 * s2 * s2;
        const float lj = -4 * sqrt(epsilon[i] * epsilon[j]) * (12 * s6 * s6 - 6 * s6) / r2;
        sum += (lj - atoms[i].w * atoms[j].w / (r2 * sqrt(r2))) * d;
    }
    gradient[3 * i] = sum.x;
    gradient[3 * i + 1] = sum.y;
    gradient[3 * i + 2] = sum.z;
}
