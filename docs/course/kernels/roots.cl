// Ceiling: four chains of inverse roots, eight lanes each.
kernel void roots(const int n, global float8 *out) {
    float8 a = get_global_id(0), b = a + 1, c = a + 2, d = a + 3;
    for (int k = 0; k < n; ++k) a = rsqrt(a + 1), b = rsqrt(b + 1), c = rsqrt(c + 1), d = rsqrt(d + 1);
    out[get_global_id(0)] = a + b + c + d;
}
