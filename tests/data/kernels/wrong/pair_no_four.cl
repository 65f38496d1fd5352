// check: pair-energy -> factor
kernel void pair(
    const int n_pairs, global const int2 *pairs, global const float4 *atoms, global const float *sigma,
    global const float *epsilon, global float *energies)
{
    const int p = get_global_id(0);
    if (p >= n_pairs) return;
    const int i = pairs[p].x, j = pairs[p].y;
    const float r = distance(atoms[i].xyz, atoms[j].xyz), s = (sigma[i] + sigma[j]) / 2;
    const float s3 = s * s * s / (r * r * r), s6 = s3 * s3;
    energies[p] = sqrt(epsilon[i] * epsilon[j]) * (s6 * s6 - s6) + atoms[i].w * atoms[j].w / r;
}
