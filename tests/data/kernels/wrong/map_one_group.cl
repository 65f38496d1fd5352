// check: potmap -> not-written
// Points of the groups after the first: an item takes those of its own number, not of its group's.
enum { POINTS = 4 };
kernel __attribute__((reqd_work_group_size(64, 4, 1))) void map_one_group(
    const int n_atoms, constant float4 *atoms, const int nx, const int ny, const int nz, const float4 corner,
    global float *map)
{
    const int width = get_local_size(0), i = get_global_id(0), j = get_global_id(1), k = get_global_id(2);
    if (i >= nx || j >= ny || k >= nz) return;
    const float y = corner.y + corner.w * j, z = corner.z + corner.w * k;
    for (int c = 0; c < POINTS && i + c * width < nx; ++c) {
        const float x = corner.x + corner.w * (i + c * width);
        float sum = 0;
        for (int a = 0; a < n_atoms; ++a) {
            const float dx = x - atoms[a].x, dy = y - atoms[a].y, dz = z - atoms[a].z;
            sum += atoms[a].w * rsqrt(dx * dx + dy * dy + dz * dz);
        }
        map[(k * ny + j) * nx + i + c * width] = sum;
    }
}
