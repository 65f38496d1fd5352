// Sum of a vector's lanes.
float lanes(float8 a) { return a.s0 + a.s1 + a.s2 + a.s3 + a.s4 + a.s5 + a.s6 + a.s7; }

// Adds to *sum the contributions of one atom to eight, and returns theirs to this atom, if `back`.
float8 both_ways(
    bool is_far, bool back, float8 dx, float8 dy, float8 dz, float4 c, global const float8 *c8, int m,
    float8 rho, float8 s, float other_rho, float other_s, global float8 *sum)
{
    const float8 r2 = dx * dx + dy * dy + dz * dz, u = 1 / r2;
    if (!is_far) {
        *sum += born8(r2, rho, other_s);
        return back ? born8(r2, other_rho, s) : (float8)0;
    }
    *sum += far8(u, c);
    return u * u * (c8[0] + u * (c8[m] + u * (c8[2 * m] + u * c8[3 * m])));
}
