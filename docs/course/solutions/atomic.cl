// A work-item owns a pair and adds its gradient to both atoms, each addition atomic.
void add(volatile global float *to, float value) {
    volatile global int *bits = (volatile global int *)to;
    int seen = 0, expected;  // a guess: the exchange returns the actual value
    do {
        expected = seen;
        seen = atomic_cmpxchg(bits, expected, as_int(as_float(expected) + value));
    } while (seen != expected);
}

kernel void atomic_pairs(
    const int n_pairs, global const int2 *pairs,  // first and second atom
    global const float4 *atoms,                   // x, y, z [A], charge times 18.22
    global float *gradient)                       // (n_atoms, 3), initially zero [kcal/mol/A]
{
    const int p = get_global_id(0);
    if (p >= n_pairs) return;
    const int i = pairs[p].x, j = pairs[p].y;
    const float4 d = atoms[i] - atoms[j];
    const float r2 = d.x * d.x + d.y * d.y + d.z * d.z;
    const float slope = -atoms[i].w * atoms[j].w * rsqrt(r2) / r2;
    add(gradient + 3 * i, slope * d.x);
    add(gradient + 3 * i + 1, slope * d.y);
    add(gradient + 3 * i + 2, slope * d.z);
    add(gradient + 3 * j, -slope * d.x);
    add(gradient + 3 * j + 1, -slope * d.y);
    add(gradient + 3 * j + 2, -slope * d.z);
}
