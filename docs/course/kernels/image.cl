// A work-item owns a point, as in gather; atoms are pixels of an image, 1,024 in a row.
constant sampler_t PIXELS = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_NONE | CLK_FILTER_NEAREST;
kernel void image(
    const int n_atoms, read_only image2d_t atoms,                   // x, y, z [A], charge times 332.06
    const int nx, const int ny, const int nz, const float4 corner,  // first point [A]; w: spacing
    global float *map)                                              // (nz, ny, nx) [kcal/mol/e]
{
    const int i = get_global_id(0), j = get_global_id(1), k = get_global_id(2);
    if (i >= nx || j >= ny || k >= nz) return;
    const float x = corner.x + corner.w * i, y = corner.y + corner.w * j, z = corner.z + corner.w * k;
    float sum = 0;
    for (int a = 0; a < n_atoms; ++a) {
        const float4 atom = read_imagef(atoms, PIXELS, (int2)(a % 1024, a / 1024));
        const float dx = x - atom.x, dy = y - atom.y, dz = z - atom.z;
        sum += atom.w * rsqrt(dx * dx + dy * dy + dz * dz);
    }
    map[(k * ny + j) * nx + i] = sum;
}
