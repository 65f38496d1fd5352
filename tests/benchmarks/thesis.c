/* Loops of the thesis as a C program has them, one call each: Born radii, pair energies, a potential map.

thesis.py builds this file with -O0, with -O3, and with -O3 -fopenmp, and calls it through ctypes. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Born radii of rows first to last, OBC II: closed form, its two tests, then the tanh step. */
void born(int n, int first, int last, const float *x, const float *rho, const float *scaled, const float *radius,
          float *found)
{
#pragma omp parallel for schedule(dynamic, 16)
    for (int i = first; i < last; ++i) {
        float sum = 0;
        for (int j = 0; j < n; ++j) {
            if (j == i) continue;
            float dx = x[3 * i] - x[3 * j], dy = x[3 * i + 1] - x[3 * j + 1], dz = x[3 * i + 2] - x[3 * j + 2];
            float r = sqrtf(dx * dx + dy * dy + dz * dz), s = scaled[j];
            if (rho[i] >= r + s) continue;
            float l = 1 / fmaxf(rho[i], fabsf(r - s)), u = 1 / (r + s);
            sum += l - u + r / 4 * (u * u - l * l) + logf(u / l) / (2 * r) + s * s / (4 * r) * (l * l - u * u);
            if (rho[i] < s - r) sum += 2 * (1 / rho[i] - l);
        }
        float psi = rho[i] * 0.5f * sum;
        found[i] = 1 / (1 / rho[i] - tanhf(psi - 0.8f * psi * psi + 4.85f * psi * psi * psi) / radius[i]);
    }
}

/* Lennard-Jones, Coulomb and GB energies of a list of pairs, and where gradient is not null, the gradient added to it.
   With OpenMP each thread has a gradient of its own, which are added at the end. */
void pairs(int n_atoms, int n_pairs, const int *pair, const float *sigma2, const float *qq, const float *x,
           const float *eps, const float *alpha, float k, double *energy, float *gradient)
{
    double lj = 0, coulomb = 0, gb = 0;
    const float screen = 1 - 1 / 80.0f;
#pragma omp parallel reduction(+ : lj, coulomb, gb)
    {
        float *own = gradient ? calloc(3 * (size_t)n_atoms, sizeof(float)) : NULL;
#pragma omp for schedule(static)
        for (int p = 0; p < n_pairs; ++p) {
            int a = pair[2 * p], b = pair[2 * p + 1];
            float dx = x[3 * a] - x[3 * b], dy = x[3 * a + 1] - x[3 * b + 1], dz = x[3 * a + 2] - x[3 * b + 2];
            float r2 = dx * dx + dy * dy + dz * dz, inv2 = 1 / r2, inv = sqrtf(inv2);
            float s2 = sigma2[p] * inv2, s6 = s2 * s2 * s2, e = eps[a] * eps[b];
            float product = alpha[a] * alpha[b], decay = expf(-r2 / (4 * product));
            float f2 = r2 + product * decay, invf = 1 / sqrtf(f2);
            float of_lj = e * (s6 * s6 - s6), of_coulomb = k * qq[p] * inv, of_gb = -k * qq[p] * screen * invf;
            lj += of_lj;
            coulomb += of_coulomb;
            gb += of_gb;
            if (own) { /* dE/dr over r */
                float g = -e * (12 * s6 * s6 - 6 * s6) * inv2 - of_coulomb * inv2;
                g -= of_gb * invf * invf * (1 - decay / 4);
                own[3 * a] += g * dx; own[3 * a + 1] += g * dy; own[3 * a + 2] += g * dz;
                own[3 * b] -= g * dx; own[3 * b + 1] -= g * dy; own[3 * b + 2] -= g * dz;
            }
        }
        if (own) {
#pragma omp critical
            for (int i = 0; i < 3 * n_atoms; ++i) gradient[i] += own[i];
            free(own);
        }
    }
    energy[0] = lj;
    energy[1] = coulomb;
    energy[2] = gb;
}

/* A potential map, atoms outside, dz2 and dy2 + dz2 once: the faster of the text books' two forms, a slice a thread. */
void map(int n, const float *atoms, int nx, int ny, int nz, float spacing, float *phi)
{
    memset(phi, 0, sizeof(float) * nx * ny * nz);
#pragma omp parallel for schedule(static)
    for (int k = 0; k < nz; ++k)
        for (int a = 0; a < n; ++a) {
            float dz = spacing * k - atoms[4 * a + 2], dz2 = dz * dz;
            for (int j = 0; j < ny; ++j) {
                float dy = spacing * j - atoms[4 * a + 1], rest = dy * dy + dz2;
                float *row = phi + ((size_t)k * ny + j) * nx;
                for (int i = 0; i < nx; ++i) {
                    float dx = spacing * i - atoms[4 * a];
                    row[i] += atoms[4 * a + 3] / sqrtf(dx * dx + rest);
                }
            }
        }
}
