// A work-item owns a point and sums over all atoms. No other work-item writes to this point.
kernel void gather(
    const int n_atoms, global const float4 *atoms,                  // x, y, z [A], charge times 332.06
    const int nx, const int ny, const int nz, const float4 corner,  // first point [A]; w: spacing
    global float *map)                                              // (nz, ny, nx) [kcal/mol/e]
{
    const int i = get_global_id(0), j = get_global_id(1), k = get_global_id(2);
    if (i >= nx || j >= ny || k >= nz) return;
    const float x = corner.x + corner.w * i, y = corner.y + corner.w * j, z = corner.z + corner.w * k;
    float sum = 0;
    for (int a = 0; a < n_atoms; ++a) {
        const float dx = x - atoms[a].x, dy = y - atoms[a].y, dz = z - atoms[a].z;
        sum += atoms[a].w * rsqrt(dx * dx + dy * dy + dz * dz);
    }
    map[(k * ny + j) * nx + i] = sum;
}
