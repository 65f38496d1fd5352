// Like coalesced, on a map padded to whole groups, without tests.
enum { POINTS = 4 };
kernel void padded(
    const int n_atoms, constant float4 *atoms,                      // x, y, z [A], charge times 332.06
    const int nx, const int ny, const int nz, const float4 corner,  // first point [A]; w: spacing
    global float *map)                                              // (nz, ny, nx) [kcal/mol/e]
{
    const int width = get_local_size(0), j = get_global_id(1), k = get_global_id(2);
    const int i = POINTS * width * get_group_id(0) + get_local_id(0);
    const float x = corner.x + corner.w * i, y = corner.y + corner.w * j, z = corner.z + corner.w * k;
    float sum[POINTS] = {0};
    for (int a = 0; a < n_atoms; ++a) {
        const float dy = y - atoms[a].y, dz = z - atoms[a].z, dyz2 = dy * dy + dz * dz;
        for (int c = 0; c < POINTS; ++c) {
            const float dx = x + corner.w * (c * width) - atoms[a].x;
            sum[c] += atoms[a].w * rsqrt(dx * dx + dyz2);
        }
    }
    for (int c = 0; c < POINTS; ++c) map[(k * ny + j) * nx + i + c * width] = sum[c];
}
