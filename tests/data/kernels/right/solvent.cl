// check: solvent
kernel void gb(
    const int n_atoms, const double factor, global const double4 *atoms, global const double *radii,
    global double *energies)
{
    const int i = get_global_id(0);
    if (i >= n_atoms) return;
    double sum = 0;
    for (int j = 0; j < n_atoms; ++j) {
        const double4 d = atoms[i] - atoms[j];
        const double r2 = d.x * d.x + d.y * d.y + d.z * d.z, product = radii[i] * radii[j];
        sum += atoms[i].w * atoms[j].w / sqrt(r2 + product * exp(-r2 / (4 * product)));
    }
    energies[i] = -factor / 2 * sum;
}
