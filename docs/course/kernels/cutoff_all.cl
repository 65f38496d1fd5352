// A work-item owns a point and tests every atom; only those within the cutoff contribute.
kernel void cutoff_all(
    const int n_atoms, global const float4 *atoms,                  // x, y, z [A], charge times 332.06
    const float cutoff,                                             // [A]
    const int nx, const int ny, const int nz, const float4 corner,  // first point [A]; w: spacing
    global float *map)                                              // (nz, ny, nx) [kcal/mol/e]
{
    const int i = get_global_id(0), j = get_global_id(1), k = get_global_id(2);
    if (i >= nx || j >= ny || k >= nz) return;
    const float x = corner.x + corner.w * i, y = corner.y + corner.w * j, z = corner.z + corner.w * k;
    float sum = 0;
    for (int a = 0; a < n_atoms; ++a) {
        const float dx = x - atoms[a].x, dy = y - atoms[a].y, dz = z - atoms[a].z;
        const float r2 = dx * dx + dy * dy + dz * dz, s = 1 - r2 / (cutoff * cutoff);
        if (r2 < cutoff * cutoff) sum += atoms[a].w * rsqrt(r2) * s * s;
    }
    map[(k * ny + j) * nx + i] = sum;
}
