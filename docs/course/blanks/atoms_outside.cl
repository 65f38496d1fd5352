// One work-item computes the whole map: each atom is added to all points; dz^2 once per plane.
kernel void atoms_outside(
    const int n_atoms, global const float4 *atoms,                  // x, y, z [A], charge times 332.06
    const int nx, const int ny, const int nz, const float4 corner,  // first point [A]; w: spacing
    global float *map)                                              // (nz, ny, nx), initially zero
{
    for (int a = 0; a < n_atoms; ++a) {
        const float4 atom = atoms[a];
        for (int k = 0; k < nz; ++k) {
            const float dz = corner.z + corner.w * k - atom.z, dz2 = ____;
            for (int j = 0; j < ny; ++j) {
                const float dy = corner.y + corner.w * j - atom.y, dyz2 = ____;
                for (int i = 0; i < nx; ++i) {
                    const float dx = corner.x + corner.w * i - atom.x;
                    map[(k * ny + j) * nx + i] += ____;
                }
            }
        }
    }
}
