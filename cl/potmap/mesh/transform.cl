// Forward and inverse transforms of the mesh along three axes. Each work-group owns neighbouring lines, which its
// work-items share. Spectra contain all real parts, then all imaginary parts, each in rows of `pitch` wave numbers
// along x. Zeros beyond the nodes are never stored.
#include "common/real.clh"
#include "potmap/mesh/line.clh"
#include "potmap/mesh/mesh_rows.clh"

#ifndef ALONG
#error "ALONG: 0, 1 or 2, the axis"
#endif

#define LINE_PARAMETERS \
    const int length, const ulong radices, /* line.clh */ \
    global const real2 *restrict roots, \
    const int pitch                        /* pitch of a row of a spectrum, of which half a length and 1 are used along x */
#define LOCALS \
    local Complex first[ROOM * LINES], second[ROOM * LINES]; \
    const Circle circle = {length, radices, roots}
#define CLEAR(begin) \
    for (int k = (begin) + get_local_id(1); k < length; k += ITEMS) first[AT(k)] = complex_of((realv)0, (realv)0)

#if ALONG == 0
// Rows from `begin` on, two per line, one in the real part and one in the imaginary part; negative beyond the last row.
#define EVEN_ROWS ((n_rows - begin + 1) / 2)
#define ODD_ROWS ((n_rows - begin) / 2)

// Two real rows of nodes are transformed as one complex line; their spectra are its even and odd parts.
kernel __attribute__((reqd_work_group_size(LINES, ITEMS, 1)))
void rows_forth(
    LINE_PARAMETERS,
    const int n_rows, const int n_nodes, const ulong plane,  // plane: real parts in the spectrum
    global const real *restrict nodes,      // (n_rows, n_nodes)
    global real *restrict spectrum)         // (2, n_rows, pitch)
{
    LOCALS;
    const int begin = 2 * WIDTH * get_global_id(0);
    global const real *own = nodes + (size_t)begin * n_nodes;
    read_rows(own, own + n_nodes, n_nodes, 2 * n_nodes, EVEN_ROWS, ODD_ROWS, first);
    CLEAR(n_nodes);
    local Complex *found = transformed(first, second, &circle);
    global real *even = spectrum + (size_t)begin * pitch, *odd = even + pitch;
    for (int some = WIDTH * get_local_id(1); some < pitch; some += WIDTH * ITEMS) {
        realv even_re[WIDTH], even_im[WIDTH], odd_re[WIDTH], odd_im[WIDTH];
        for (int i = 0; i < WIDTH; ++i) {
            const int k = some + i;
            const real share = k <= length / 2 ? (real)0.5 : (real)0;
            const Complex a = found[AT(min(k, length / 2))], b = found[AT(k == 0 ? 0 : max(length - k, length / 2))];
            even_re[i] = share * (a.re + b.re);
            even_im[i] = share * (a.im - b.im);
            odd_re[i] = share * (a.im + b.im);
            odd_im[i] = share * (b.re - a.re);
        }
        store_square(even_re, 2 * pitch, EVEN_ROWS, even + some);
        store_square(even_im, 2 * pitch, EVEN_ROWS, even + plane + some);
        store_square(odd_re, 2 * pitch, ODD_ROWS, odd + some);
        store_square(odd_im, 2 * pitch, ODD_ROWS, odd + plane + some);
    }
}

// Inverse: the spectra A and B of two rows form A + i B; the other half is conj(A) + i conj(B).
kernel __attribute__((reqd_work_group_size(LINES, ITEMS, 1)))
void rows_back(
    LINE_PARAMETERS,
    const int n_rows, const int n_nodes, const ulong plane,
    global const real *restrict spectrum,   // (2, n_rows, pitch)
    global real *restrict nodes)            // (n_rows, n_nodes)
{
    LOCALS;
    const int begin = 2 * WIDTH * get_global_id(0);
    global const real *even = spectrum + (size_t)begin * pitch, *odd = even + pitch;
    for (int some = WIDTH * get_local_id(1); some <= length / 2; some += WIDTH * ITEMS) {
        realv a_re[WIDTH], a_im[WIDTH], b_re[WIDTH], b_im[WIDTH];
        load_square(even + some, 2 * pitch, EVEN_ROWS, a_re);
        load_square(even + plane + some, 2 * pitch, EVEN_ROWS, a_im);
        load_square(odd + some, 2 * pitch, ODD_ROWS, b_re);
        load_square(odd + plane + some, 2 * pitch, ODD_ROWS, b_im);
        // Swapping real and imaginary parts before and after a transform gives its inverse.
        for (int i = 0, k = some; i < WIDTH && k <= length / 2; ++i, ++k) {
            first[AT(k)] = complex_of(a_im[i] + b_re[i], a_re[i] - b_im[i]);
            if (0 < k && k < length - k) first[AT(length - k)] = complex_of(b_re[i] - a_im[i], a_re[i] + b_im[i]);
        }
    }
    local Complex *found = transformed(first, second, &circle);
    global real *own = nodes + (size_t)begin * n_nodes;
    // Swapped back here.
    write_rows(found, n_nodes, 2 * n_nodes, ODD_ROWS, EVEN_ROWS, own + n_nodes, own);
}

#elif ALONG == 1
// Columns along y: from n_from to n_to numbers; the others are zero or not needed.
kernel __attribute__((reqd_work_group_size(LINES, ITEMS, 1)))
void columns(
    LINE_PARAMETERS,
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
// Along z: forward transform, product with the Green function, inverse transform.
kernel __attribute__((reqd_work_group_size(LINES, ITEMS, 1)))
void convolve(
    LINE_PARAMETERS,
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
