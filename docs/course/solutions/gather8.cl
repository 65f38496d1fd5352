// A work-item owns eight neighbouring points of a row, one in each lane of a vector register.
enum { POINTS = 8 };
kernel void gather8(
    const int n_atoms, global const float4 *atoms,                  // x, y, z [A], charge times 332.06
    const int nx, const int ny, const int nz, const float4 corner,  // first point [A]; w: spacing
    global float *map)                                              // (nz, ny, nx) [kcal/mol/e]
{
    const int i = POINTS * get_global_id(0), j = get_global_id(1), k = get_global_id(2);
    if (i >= nx || j >= ny || k >= nz) return;
    const float8 x = corner.x + corner.w * (i + (float8)(0, 1, 2, 3, 4, 5, 6, 7));
    const float y = corner.y + corner.w * j, z = corner.z + corner.w * k;
    float8 sum = 0;
    for (int a = 0; a < n_atoms; ++a) {
        const float dy = y - atoms[a].y, dz = z - atoms[a].z;
        const float8 dx = x - atoms[a].x;
        sum += atoms[a].w * rsqrt(dx * dx + (dy * dy + dz * dz));
    }
    float lanes[POINTS];
    vstore8(sum, 0, lanes);
    for (int c = 0; c < POINTS && i + c < nx; ++c) map[(k * ny + j) * nx + i + c] = lanes[c];
}
