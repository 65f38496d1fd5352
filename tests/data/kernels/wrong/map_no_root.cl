// check: potmap -> formula
kernel void potential(
    const int n_atoms, global const float4 *atoms, const int nx, const int ny, const int nz, const float4 corner,
    global float *map)
{
    const int i = get_global_id(0), j = get_global_id(1), k = get_global_id(2);
    if (i >= nx || j >= ny || k >= nz) return;
    const float x = corner.x + i * corner.w, y = corner.y + j * corner.w, z = corner.z + k * corner.w;
    float sum = 0;
    for (int a = 0; a < n_atoms; ++a) {
        const float dx = x - atoms[a].x, dy = y - atoms[a].y, dz = z - atoms[a].z;
        sum += atoms[a].w / (dx * dx + dy * dy + dz * dz);
    }
    map[(k * ny + j) * nx + i] = sum;
}
