// A work-item owns eight atoms, one in each lane of a vector register, and loops over all atoms.
kernel void vectors(
    const int n, global const float4 *atoms,  // (n) x, y, z, s [A]
    global const float8 *x, global const float8 *y, global const float8 *z,  // the same as columns
    global const float8 *rho,                 // (n) radius less 0.09 [A]
    global float8 *integrals)                 // (n) Born integrals [1/A]
{
    const int i = get_global_id(0);
    if (8 * i >= n) return;
    float8 sum = 0;
    for (int j = 0; j < n; ++j) {
        const float8 dx = x[i] - atoms[j].x, dy = y[i] - atoms[j].y, dz = z[i] - atoms[j].z;
        sum += hct8(dx * dx + dy * dy + dz * dz, rho[i], atoms[j].w);
    }
    integrals[i] = sum;
}
