// check: solvent -> barrier at line 13, needs the simulator
// The next tile replaces atoms that slower work-items have still to read.
enum { TILE = 64 };
kernel void tiles(
    const int n_atoms, const float factor, global const float4 *atoms, global const float *radii,
    global float *energies)
{
    local float4 tile[TILE];
    local float born[TILE];
    const int i = get_global_id(0), item = get_local_id(0), own = min(i, n_atoms - 1);
    float sum = 0;
    for (int begin = 0; begin < n_atoms; begin += TILE) {
        if (begin + item < n_atoms) tile[item] = atoms[begin + item], born[item] = radii[begin + item];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int a = 0; a < min(TILE, n_atoms - begin); ++a) {
            const float4 d = atoms[own] - tile[a];
            const float r2 = d.x * d.x + d.y * d.y + d.z * d.z, bb = radii[own] * born[a];
            sum += tile[a].w * rsqrt(r2 + bb * exp(-r2 / (4 * bb)));
        }
    }
    if (i < n_atoms) energies[i] = -0.5f * factor * atoms[own].w * sum;
}
