// Each pair of tiles once: both atoms use the same distance. Work-items have separate sums: no races.
enum { TILE = 32, PARTS = 16 };
kernel void blocks(
    const int n, global const float4 *atoms, global const float4 *series,
    global const float4 *centre, global const float4 *half_edges,
    global const float8 *x, global const float8 *y, global const float8 *z,
    global const float8 *rho, global const float8 *s,
    global const float8 *series8,  // (4, n) series as columns
    global float8 *sums)           // (PARTS, n), initially zero; their sum: Born integrals
{
    const int m = n / 8, part = get_global_id(0);
    global float8 *of = sums + part * m;
    for (int t = part; t < n / TILE; t += PARTS)
        for (int v = t; v < n / TILE; ++v) {
            const float far = 5 * fmax(centre[t].w, centre[v].w);
            const bool is_far = gap2(centre[t], half_edges[t], centre[v], half_edges[v]) > far * far;
            for (int j = t * TILE; j < (t + 1) * TILE; ++j) {
                const float4 atom = atoms[j];
                float8 back = 0;
                for (int i = v * TILE / 8; i < (v + 1) * TILE / 8; ++i)
                    back += both_ways(is_far, v > t, x[i] - atom.x, y[i] - atom.y, z[i] - atom.z,
                        series[j], series8 + i, m, rho[i], s[i], ((global float *)rho)[j], atom.w,
                        of + i);
                ((global float *)of)[j] += lanes(back);
            }
        }
}
