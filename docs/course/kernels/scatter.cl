// A work-item owns an atom and adds it to all points. Many write to each, so additions are atomic:
// the number is replaced by the sum only if no other work-item has changed it; otherwise try again.
kernel void scatter(
    const int n_atoms, global const float4 *atoms,                  // x, y, z [A], charge times 332.06
    const int nx, const int ny, const int nz, const float4 corner,  // first point [A]; w: spacing
    volatile global int *map)                                       // (nz, ny, nx) bits, initially 0
{
    const int a = get_global_id(0);
    if (a >= n_atoms) return;
    for (int p = 0; p < nx * ny * nz; ++p) {
        const float dx = corner.x + corner.w * (p % nx) - atoms[a].x;
        const float dy = corner.y + corner.w * (p / nx % ny) - atoms[a].y;
        const float dz = corner.z + corner.w * (p / nx / ny) - atoms[a].z;
        const float value = atoms[a].w * rsqrt(dx * dx + dy * dy + dz * dz);
        int seen = 0, expected;  // a guess: the exchange returns the actual value
        do {
            expected = seen;
            seen = atomic_cmpxchg(map + p, expected, as_int(as_float(expected) + value));
        } while (seen != expected);
    }
}
