// One pass of Fourier transforms, in global memory: a work-item has one butterfly of one line. Every pass reads and writes all
// numbers, so a transform of 2^n numbers goes to memory n times. docs/theory/fft.md
#include "common/real.clh"
#include "potmap/mesh/butterflies.clh"

#ifndef RADIX
#error "RADIX: numbers of a butterfly: 2, 3, 5 or 7"
#endif

kernel void fft_plain(
    const int length,                       // of the lines
    const int done,                         // numbers of the transforms that the passes before have made
    const int n_inner,                      // numbers from one of a line to the next
    const int n_lines,
    const int apart,                        // numbers from n_inner lines to the next ones
    const ulong plane,                      // numbers in all, padding included: then come the imaginary parts
    global const real2 *restrict roots,     // (length) exp(-2 pi i k / length)
    global const real *restrict from,       // (2, n_outer, length, n_inner), along x with padding behind lines
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
