// check: potmap -> barrier at line 14, needs the simulator
// The next tile replaces atoms that slower work-items have still to read.
enum { TILE = 64 };
kernel void tiles(
    const int n_atoms, const int nx, const int ny, const int nz, const float4 corner,
    global const float4 *atoms, global float *map)
{
    local float4 tile[TILE];
    const int i = get_global_id(0), j = get_global_id(1), k = get_global_id(2);
    const int item = get_local_id(0) + get_local_size(0) * (get_local_id(1) + get_local_size(1) * get_local_id(2));
    const float x = corner.x + i * corner.w, y = corner.y + j * corner.w, z = corner.z + k * corner.w;
    float sum = 0;
    for (int begin = 0; begin < n_atoms; begin += TILE) {
        if (begin + item < n_atoms) tile[item] = atoms[begin + item];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int a = 0; a < min(TILE, n_atoms - begin); ++a) {
            const float dx = x - tile[a].x, dy = y - tile[a].y, dz = z - tile[a].z;
            sum += tile[a].w * rsqrt(dx * dx + dy * dy + dz * dz);
        }
    }
    if (i < nx && j < ny && k < nz) map[(k * ny + j) * nx + i] = sum;
}
