// Ceiling: two numbers read and one written for two operations, limited only by memory.
kernel void triad(global const float8 *a, global const float8 *b, global float8 *out) {
    const int k = get_global_id(0);
    out[k] = a[k] + 3 * b[k];
}
