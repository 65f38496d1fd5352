// One pass of Fourier transforms in global memory, one work-item per butterfly of a line. Every pass loads and stores
// all numbers, so a transform of 2^n numbers accesses memory n times. docs/theory/fft.md
#include "common/real.clh"
#include "potmap/mesh/butterflies.clh"

#ifndef RADIX
#error "RADIX: numbers of a butterfly: 2, 3, 5 or 7"
#endif

kernel void fft_plain(
    const int length,                       // of each line
    const int done,                         // length of the transforms completed by the previous passes
    const int n_inner,                      // stride between numbers of a line
    const int n_lines,
    const int apart,                        // stride between sets of n_inner lines
    const ulong plane,                      // size of the real parts, including padding; the imaginary parts follow
    global const real2 *restrict roots,     // (length) exp(-2 pi i k / length)
    global const real *restrict from,       // (2, n_outer, length, n_inner), along x with padded lines
    global real *restrict to)
{
    const int line = get_global_id(0), b = get_global_id(1), n = length / RADIX;
    if (line >= n_lines || b >= n) return;
    const int outer = line / n_inner, part = b / done, k = b - part * done, step = k * (n / done);
    const size_t begin = (size_t)outer * apart + (line - outer * n_inner);
    Complex v[RADIX];
    for (int i = 0; i < RADIX; ++i) {
        const size_t at = begin + (size_t)(b + i * n) * n_inner;
        v[i] = turned(complex_of(from[at], from[plane + at]), roots[i * step]);
    }
    CAT(transform_, RADIX)(v);
    for (int i = 0; i < RADIX; ++i) {
        const size_t at = begin + (size_t)(part * done * RADIX + k + i * done) * n_inner;
        to[at] = v[i].re;
        to[plane + at] = v[i].im;
    }
}
