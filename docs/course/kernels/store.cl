// A work-item owns a pair and stores its gradient at the pair's index; no other item writes there.
kernel void store(
    const int n_pairs, global const int2 *pairs,  // first and second atom
    global const float4 *atoms,                   // x, y, z [A], charge times 18.22
    global float4 *stored)                        // (n_pairs) at the first atom [kcal/mol/A]
{
    const int p = get_global_id(0);
    if (p >= n_pairs) return;
    const float4 first = atoms[pairs[p].x], second = atoms[pairs[p].y], d = first - second;
    const float r2 = d.x * d.x + d.y * d.y + d.z * d.z, slope = -first.w * second.w * rsqrt(r2) / r2;
    stored[p] = (float4)(slope * d.x, slope * d.y, slope * d.z, 0);
}
