// check: nonbond -> race at line 13, needs the simulator
kernel void scattered(
    const int n_pairs, global const int2 *pairs, global const float4 *atoms, global const float *sigma,
    global const float *epsilon, global float *gradient)
{
    const int p = get_global_id(0);
    if (p >= n_pairs) return;
    const int i = pairs[p].x, j = pairs[p].y;
    const float3 d = atoms[i].xyz - atoms[j].xyz;
    const float r2 = dot(d, d), s = (sigma[i] + sigma[j]) / 2, s2 = s * s / r2, s6 = s2 * s2 * s2;
    const float lj = -4 * sqrt(epsilon[i] * epsilon[j]) * (12 * s6 * s6 - 6 * s6) / r2;
    const float3 pull = (lj - atoms[i].w * atoms[j].w / (r2 * sqrt(r2))) * d;
    gradient[3 * i] += pull.x; gradient[3 * i + 1] += pull.y; gradient[3 * i + 2] += pull.z;
    gradient[3 * j] -= pull.x; gradient[3 * j + 1] -= pull.y; gradient[3 * j + 2] -= pull.z;
}
