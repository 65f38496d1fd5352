// Fourier transforms of whole lines in local memory (CUDA: shared memory): global memory is read and written only once,
// however many passes. Each work-group has LINES lines; ITEMS work-items share the butterflies of each.
// docs/theory/fft.md
#include "common/real.clh"
#include "potmap/mesh/butterflies.clh"

#ifndef ROOM
#error "ROOM: numbers of the longest lines"
#endif
#ifndef LINES
#error "LINES: lines of a group"
#endif
#ifndef ITEMS
#error "ITEMS: work-items that share the butterflies of a line"
#endif

#define LARGEST 7  // radix
#define AT(k) ((k) * LINES + get_local_id(0))

INLINE void transform_any(Complex *v, int radix) {
    switch (radix) {
        case 2: transform_2(v); break;
        case 3: transform_3(v); break;
        case 5: transform_5(v); break;
        default: transform_7(v); break;
    }
}

kernel __attribute__((reqd_work_group_size(LINES, ITEMS, 1)))
void fft_shared(
    const int length,                       // of each line
    const ulong radices,                    // of the passes, one decimal digit each, the first pass last: 2, 3, 5 or 7
    global const real2 *restrict roots,     // (length) exp(-2 pi i k / length)
    const int n_inner,                      // stride between numbers of a line
    const int n_lines,
    const int apart,                        // stride between sets of n_inner lines
    const ulong plane,                      // size of the real parts, including padding; the imaginary parts follow
    global const real *restrict from,       // (2, n_outer, length, n_inner), along x with padded lines
    global real *restrict to)
{
    local Complex first[ROOM * LINES], second[ROOM * LINES];
    local Complex *here = first, *there = second;
    const int line = get_global_id(0), item = get_local_id(1), outer = line / n_inner;
    const size_t begin = (size_t)outer * apart + (line - outer * n_inner);
    if (line < n_lines)
        for (int k = item; k < length; k += ITEMS) {
            const size_t at = begin + (size_t)k * n_inner;
            here[AT(k)] = complex_of(from[at], from[plane + at]);
        }
    int done = 1;
    for (ulong left = radices; left > 0; left /= 10) {
        const int radix = (int)(left % 10), n = length / radix;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int b = item; b < n; b += ITEMS) {
            const int part = b / done, k = b - part * done, step = k * (n / done);
            Complex v[LARGEST];
            for (int i = 0; i < radix; ++i) v[i] = turned(here[AT(b + i * n)], roots[i * step]);
            transform_any(v, radix);
            for (int i = 0; i < radix; ++i) there[AT(part * done * radix + k + i * done)] = v[i];
        }
        done *= radix;
        local Complex *other = here;
        here = there;
        there = other;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (line < n_lines)
        for (int k = item; k < length; k += ITEMS) {
            const size_t at = begin + (size_t)k * n_inner;
            to[at] = here[AT(k)].re;
            to[plane + at] = here[AT(k)].im;
        }
}
