// Fourier transforms of whole lines in local memory, with butterflies of up to eight numbers in registers: a third of
// the passes of fft_shared.cl. On CPUs a register holds one number of WIDTH lines. The mesh uses potmap/mesh/line.clh;
// docs/theory/fft.md
#include "common/real.clh"
#include "potmap/mesh/line.clh"
#include "potmap/mesh/mesh_rows.clh"

#ifndef ALONG
#error "ALONG: 0 where the numbers of a line stand side by side, else 1"
#endif

#if ALONG == 1 || WIDTH == 1
// Numbers of the work-item's lines in global memory; exists: false beyond the last line
typedef struct { global const real *re, *im; size_t apart; } Source;
typedef struct { global real *re, *im; size_t apart; bool exists; } Target;
#define GET_FAR(from, k) complex_of(LOAD((size_t)(k) * (from)->apart, (from)->re), LOAD((size_t)(k) * (from)->apart, (from)->im))
#define PUT_FAR(to, k, value) \
    if ((to)->exists) { \
        STORE((value).re, (size_t)(k) * (to)->apart, (to)->re); \
        STORE((value).im, (size_t)(k) * (to)->apart, (to)->im); \
    }
DEFINE_PASSES(first_pass_, const Source *, GET_FAR, local Complex *, PUT_HELD)
DEFINE_PASSES(last_pass_, local const Complex *, GET_HELD, const Target *, PUT_FAR)

// Intermediate passes stay in local memory: the first one loads the numbers, the last one stores them.
INLINE void transform_line(
    const Source *source, const Target *target, local Complex *a, local Complex *b, const Circle *circle)
{
    int done = (int)(circle->radices % 10);
    ulong left = circle->radices / 10;
    first_pass_(done, source, a, circle, 1);
    for (; left >= 10; left /= 10) {
        const int radix = (int)(left % 10);
        pass_(radix, a, b, circle, done);
        done *= radix;
        local Complex *other = a;
        a = b;
        b = other;
    }
    if (left > 0)
        last_pass_((int)left, a, target, circle, done);
    else
        EACH_NUMBER(k, circle->length) PUT_FAR(target, k, a[AT(k)]);
}
#endif

kernel __attribute__((reqd_work_group_size(LINES, ITEMS, 1)))
void fft_registers(
    const int length,                       // of each line
    const ulong radices,                    // line.clh
    global const real2 *restrict roots,
    const int n_inner,                      // stride between numbers of a line: 1, or a multiple of WIDTH
    const int n_lines,
    const int apart,                        // stride between sets of n_inner lines
    const ulong plane,                      // size of the real parts, including padding; the imaginary parts follow
    global const real *restrict from,       // (2, n_outer, length, n_inner), along x with padded lines
    global real *restrict to)
{
    local Complex first[ROOM * LINES], second[ROOM * LINES];
    const Circle circle = {length, radices, roots};
    const int line = WIDTH * get_global_id(0), outer = line / n_inner;
    const size_t begin = (size_t)outer * apart + (line - outer * n_inner);
#if ALONG == 1 || WIDTH == 1
    const bool exists = line < n_lines;
    const size_t at = exists ? begin : 0;
    const Source source = {from + at, from + plane + at, n_inner};
    const Target target = {to + at, to + plane + at, n_inner, exists};
    transform_line(&source, &target, first, second, &circle);
#else
    read_rows(from + begin, from + plane + begin, length, apart, n_lines - line, n_lines - line, first);
    local Complex *found = transformed(first, second, &circle);
    write_rows(found, length, apart, n_lines - line, n_lines - line, to + begin, to + plane + begin);
#endif
}
