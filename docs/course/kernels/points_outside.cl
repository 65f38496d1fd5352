// One work-item computes the whole map: for each point it adds up all atoms.
kernel void points_outside(
    const int n_atoms, global const float4 *atoms,                  // x, y, z [A], charge times 332.06
    const int nx, const int ny, const int nz, const float4 corner,  // first point [A]; w: spacing
    global float *map)                                              // (nz, ny, nx) [kcal/mol/e]
{
    for (int k = 0; k < nz; ++k)
        for (int j = 0; j < ny; ++j)
            for (int i = 0; i < nx; ++i) {
                const float x = corner.x + corner.w * i, y = corner.y + corner.w * j;
                const float z = corner.z + corner.w * k;
                float sum = 0;
                for (int a = 0; a < n_atoms; ++a) {
                    const float dx = x - atoms[a].x, dy = y - atoms[a].y, dz = z - atoms[a].z;
                    sum += atoms[a].w * rsqrt(dx * dx + dy * dy + dz * dz);
                }
                map[(k * ny + j) * nx + i] = sum;
            }
}
