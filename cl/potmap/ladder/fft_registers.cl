// Fourier transforms of whole lines in local memory by butterflies of up to eight numbers, which a work-item holds in registers:
// a third of the passes of fft_shared.cl. On CPUs a register has one number of WIDTH lines. The mesh's own way
// (potmap/mesh/line.clh). docs/theory/fft.md
#include "common/real.clh"
#include "potmap/mesh/line.clh"
#include "potmap/mesh/rows.clh"

#ifndef ALONG
#error "ALONG: 0 where the numbers of a line stand side by side, else 1"
#endif

kernel __attribute__((reqd_work_group_size(LINES, ITEMS, 1)))
void fft_registers(
    const int length,                       // of the lines
    const ulong radices,                    // line.clh
    global const real2 *restrict roots,
    const int n_inner,                      // numbers from one of a line to the next: 1, or a multiple of WIDTH
    const int n_lines,
    const int apart,                        // numbers from n_inner lines to the next ones
    const ulong plane,                      // numbers in all, padding included: then come the imaginary parts
    global const real *restrict from,       // (2, n_outer, length, n_inner), along x with padding behind lines
    global real *restrict to)
{
    local Complex first[ROOM * LINES], second[ROOM * LINES];
    const Circle circle = {length, radices, roots};
    const int line = WIDTH * get_global_id(0), outer = line / n_inner;
    const size_t begin = (size_t)outer * apart + (line - outer * n_inner);
#if ALONG == 0
    read_rows(from + begin, from + plane + begin, length, apart, n_lines - line, n_lines - line, first);
#else
    if (line < n_lines)
        EACH_NUMBER(k, length) {
            const size_t at = begin + (size_t)k * n_inner;
            first[AT(k)] = complex_of(LOAD(at, from), LOAD(at, from + plane));
        }
#endif
    local Complex *found = transformed(first, second, &circle);
#if ALONG == 0
    write_rows(found, length, apart, n_lines - line, n_lines - line, to + begin, to + plane + begin);
#else
    if (line < n_lines)
        EACH_NUMBER(k, length) {
            const size_t at = begin + (size_t)k * n_inner;
            STORE(found[AT(k)].re, at, to);
            STORE(found[AT(k)].im, at, to + plane);
        }
#endif
}
