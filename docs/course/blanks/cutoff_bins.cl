// A work-item owns a point and loops over the bins of its neighbourhood list, and the atoms in them.
kernel void cutoff_bins(
    global const float4 *atoms, global const int *begins,  // bin after bin; (bins + 1) starts
    const int4 bins, const float edge,                     // bins along x, y, z; their edge [A]
    global const int4 *near, const int n_near,             // offsets of bins from a point's own bin
    const float cutoff,                                    // [A]
    const int nx, const int ny, const int nz, const float4 corner,  // first point, bin [A]; w: spacing
    global float *map)                                              // (nz, ny, nx) [kcal/mol/e]
{
    const int i = get_global_id(0), j = get_global_id(1), k = get_global_id(2);
    if (i >= nx || j >= ny || k >= nz) return;
    const float h = corner.w, x = corner.x + h * i, y = corner.y + h * j, z = corner.z + h * k;
    const int4 own = convert_int4((float4)(h * i, h * j, h * k, 0) / edge);
    float sum = 0;
    for (int n = 0; n < n_near; ++n) {
        const int4 bin = own + near[n];
        if (____) continue;
        const int b = ____;
        for (int a = ____; a < ____; ++a) {
            const float dx = x - atoms[a].x, dy = y - atoms[a].y, dz = z - atoms[a].z;
            const float r2 = dx * dx + dy * dy + dz * dz, s = 1 - r2 / (cutoff * cutoff);
            if (____) sum += atoms[a].w * rsqrt(r2) * s * s;
        }
    }
    map[(k * ny + j) * nx + i] = sum;
}
