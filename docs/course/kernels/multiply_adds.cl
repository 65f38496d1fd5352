// Ceiling: eight independent chains of multiply-adds, eight lanes each.
kernel void multiply_adds(const int n, global float8 *out) {
    const float8 x = 0.999f, y = 0.001f;
    float8 a = get_global_id(0), b = a + 1, c = a + 2, d = a + 3;
    float8 e = a + 4, f = a + 5, g = a + 6, h = a + 7;
    for (int k = 0; k < n; ++k) {
        a = a * x + y, b = b * x + y, c = c * x + y, d = d * x + y;
        e = e * x + y, f = f * x + y, g = g * x + y, h = h * x + y;
    }
    out[get_global_id(0)] = a + b + c + d + e + f + g + h;
}
