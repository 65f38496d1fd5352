// Like vectors, over tiles of sorted atoms: one test of two boxes is sufficient for 256 pairs.
enum { TILE = 32 };
kernel void tiles(
    const int n, global const float4 *atoms,                       // (n) x, y, z, s [A]
    global const float4 *series,                                   // (n) coefficients, s^3/3 first
    global const float4 *centre, global const float4 *half_edges,  // of boxes; centre.w: largest s
    global const float8 *x, global const float8 *y, global const float8 *z,
    global const float8 *rho,                                      // (n) radius less 0.09 [A]
    global float8 *integrals)                                      // (n) Born integrals [1/A]
{
    const int i = get_global_id(0), own = 8 * i / TILE;
    if (8 * i >= n) return;
    const float8 own_x = x[i], own_y = y[i], own_z = z[i], own_rho = rho[i];
    float8 sum = 0;
    for (int t = 0; t < n / TILE; ++t) {
        const float far = 5 * centre[t].w;
        const bool is_far = gap2(centre[t], half_edges[t], centre[own], half_edges[own]) > far * far;
        float8 of_tile = 0;
        for (int j = t * TILE; is_far && j < (t + 1) * TILE; ++j) {
            const float8 dx = own_x - atoms[j].x, dy = own_y - atoms[j].y, dz = own_z - atoms[j].z;
            of_tile += far8(1 / (dx * dx + dy * dy + dz * dz), series[j]);
        }
        for (int j = t * TILE; !is_far && j < (t + 1) * TILE; ++j) {
            const float8 dx = own_x - atoms[j].x, dy = own_y - atoms[j].y, dz = own_z - atoms[j].z;
            of_tile += born8(dx * dx + dy * dy + dz * dz, own_rho, atoms[j].w);
        }
        sum += of_tile;
    }
    integrals[i] = sum;
}
