// The mesh's three transforms there and back. A work-group owns neighbouring lines, its work-items share them. Spectra have their real parts first, then their imaginary ones, each with rows
// of `pitch` wave numbers along x. What lies beyond the nodes is zero and never stored.
#include "common/real.clh"
#include "potmap/mesh/line.clh"

#ifndef ALONG
#error "ALONG: 0, 1 or 2, the axis"
#endif

#define LINE_ARGUMENTS \
    const int length, const int radices,   /* line.clh */ \
    global const real2 *restrict roots, \
    const int pitch                        /* numbers of a row of a spectrum, of which half a length and 1 along x count */
#define LOCALS \
    local Complex first[ROOM * LINES], second[ROOM * LINES]; \
    const Circle circle = {length, radices, roots}
#define EACH_NUMBER(k, end) for (int k = get_local_id(1); k < (end); k += ITEMS)
#define CLEAR(begin) \
    for (int k = (begin) + get_local_id(1); k < length; k += ITEMS) first[AT(k)] = complex_of((realv)0, (realv)0)

#if WIDTH == 1
#define LANE(value, lane) (value)
#else
#define LANE(value, lane) (((local real *)&(value))[lane])
#endif

#if ALONG == 0
// Two rows of nodes are one line of complex numbers; each one's spectrum is what is even or odd about it.
kernel __attribute__((reqd_work_group_size(LINES, ITEMS, 1)))
void rows_forth(
    LINE_ARGUMENTS,
    const int n_rows, const int n_nodes, const ulong plane,  // plane: real parts in the spectrum
    global const real *restrict nodes,      // (n_rows, n_nodes)
    global real *restrict spectrum)         // (2, n_rows, pitch)
{
    LOCALS;
    const int begin = 2 * WIDTH * get_global_id(0);
    EACH_NUMBER(k, n_nodes) {
        for (int lane = 0; lane < WIDTH; ++lane) {
            const int row = begin + 2 * lane;
            LANE(first[AT(k)].re, lane) = row < n_rows ? nodes[(size_t)row * n_nodes + k] : (real)0;
            LANE(first[AT(k)].im, lane) = row + 1 < n_rows ? nodes[(size_t)(row + 1) * n_nodes + k] : (real)0;
        }
    }
    CLEAR(n_nodes);
    local Complex *found = transformed(first, second, &circle);
    EACH_NUMBER(k, pitch) {
        const bool counts = k <= length / 2;
        const int mirrored = k == 0 || !counts ? 0 : length - k;
        for (int lane = 0; lane < WIDTH; ++lane) {
            const int row = begin + 2 * lane;
            const size_t at = (size_t)row * pitch + k;
            local Complex *a = &found[AT(counts ? k : 0)], *b = &found[AT(mirrored)];
            const real re = LANE(a->re, lane), im = LANE(a->im, lane), re_b = LANE(b->re, lane), im_b = LANE(b->im, lane);
            if (row < n_rows) {
                spectrum[at] = counts ? (real)0.5 * (re + re_b) : (real)0;
                spectrum[plane + at] = counts ? (real)0.5 * (im - im_b) : (real)0;
            }
            if (row + 1 < n_rows) {
                spectrum[at + pitch] = counts ? (real)0.5 * (im + im_b) : (real)0;
                spectrum[plane + at + pitch] = counts ? (real)0.5 * (re_b - re) : (real)0;
            }
        }
    }
}

// The way back: the spectra A and B of two rows make A + i B, whose other half is conj(A) + i conj(B).
kernel __attribute__((reqd_work_group_size(LINES, ITEMS, 1)))
void rows_back(
    LINE_ARGUMENTS,
    const int n_rows, const int n_nodes, const ulong plane,
    global const real *restrict spectrum,   // (2, n_rows, pitch)
    global real *restrict nodes)            // (n_rows, n_nodes)
{
    LOCALS;
    const int begin = 2 * WIDTH * get_global_id(0);
    EACH_NUMBER(k, length) {
        const bool mirrored = k > length / 2;
        for (int lane = 0; lane < WIDTH; ++lane) {
            const int row = begin + 2 * lane;
            const size_t at = (size_t)row * pitch + (mirrored ? length - k : k);
            real a = 0, a_im = 0, b = 0, b_im = 0;
            if (row < n_rows) {
                a = spectrum[at];
                a_im = mirrored ? -spectrum[plane + at] : spectrum[plane + at];
            }
            if (row + 1 < n_rows) {
                b = spectrum[at + pitch];
                b_im = mirrored ? -spectrum[plane + at + pitch] : spectrum[plane + at + pitch];
            }
            // Real and imaginary part change places, there and back: that makes of the transform its inverse.
            LANE(first[AT(k)].im, lane) = a - b_im;
            LANE(first[AT(k)].re, lane) = a_im + b;
        }
    }
    local Complex *found = transformed(first, second, &circle);
    EACH_NUMBER(k, n_nodes) {
        for (int lane = 0; lane < WIDTH; ++lane) {
            const int row = begin + 2 * lane;
            if (row < n_rows) nodes[(size_t)row * n_nodes + k] = LANE(found[AT(k)].im, lane);
            if (row + 1 < n_rows) nodes[(size_t)(row + 1) * n_nodes + k] = LANE(found[AT(k)].re, lane);
        }
    }
}

#elif ALONG == 1
// Columns along y: from n_from to n_to numbers, of which the others are zero or not wanted.
kernel __attribute__((reqd_work_group_size(LINES, ITEMS, 1)))
void columns(
    LINE_ARGUMENTS,
    const int n_from, const int n_to, const int back, const ulong plane_from, const ulong plane_to,
    global const real *restrict from,       // (2, nz, n_from, pitch)
    global real *restrict to)               // (2, nz, n_to, pitch)
{
    LOCALS;
    const int x = WIDTH * get_global_id(0), z = get_group_id(2);
    global const real *re = from + (back ? plane_from : 0), *im = from + (back ? 0 : plane_from);
    EACH_NUMBER(k, n_from) {
        const size_t at = ((size_t)z * n_from + k) * pitch + x;
        first[AT(k)] = complex_of(LOAD(at, re), LOAD(at, im));
    }
    CLEAR(n_from);
    local Complex *found = transformed(first, second, &circle);
    EACH_NUMBER(k, n_to) {
        const size_t at = ((size_t)z * n_to + k) * pitch + x;
        const Complex value = found[AT(k)];
        STORE(back ? value.im : value.re, at, to);
        STORE(back ? value.re : value.im, at, to + plane_to);
    }
}

#else
// Along z there, times the Green function, and back.
kernel __attribute__((reqd_work_group_size(LINES, ITEMS, 1)))
void convolve(
    LINE_ARGUMENTS,
    const int n_z, const int n_y, const ulong plane,
    global const real *restrict green,      // (length / 2 + 1, n_y / 2 + 1, pitch)
    global real *restrict spectrum)         // (2, n_z, n_y, pitch)
{
    LOCALS;
    const int x = WIDTH * get_global_id(0), y = get_group_id(2), folded = min(y, n_y - y);
    EACH_NUMBER(k, n_z) {
        const size_t at = ((size_t)k * n_y + y) * pitch + x;
        first[AT(k)] = complex_of(LOAD(at, spectrum), LOAD(at, spectrum + plane));
    }
    CLEAR(n_z);
    local Complex *found = transformed(first, second, &circle), *other = found == first ? second : first;
    EACH_NUMBER(k, length) {
        const realv factor = LOAD(((size_t)min(k, length - k) * (n_y / 2 + 1) + folded) * pitch + x, green);
        const Complex value = found[AT(k)];
        found[AT(k)] = complex_of(factor * value.im, factor * value.re);
    }
    found = transformed(found, other, &circle);
    EACH_NUMBER(k, n_z) {
        const size_t at = ((size_t)k * n_y + y) * pitch + x;
        const Complex value = found[AT(k)];
        STORE(value.im, at, spectrum);
        STORE(value.re, at, spectrum + plane);
    }
}
#endif
