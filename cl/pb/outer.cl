// The equation in wide numbers: its residuals, from which corrections are computed in float32. One work-item per plane
// of nodes (CPUs) or per few nodes.
#include "common/real.clh"
#include "common/total.clh"
#define WIDE_NUMBERS
#include "pb/operator.clh"

#ifndef N_IONS
#error "N_IONS: species of ions of the nonlinear equation, 0 of the linear one"
#endif

#if CODED
typedef uchar access;  // accessibility of a node to ions, 0 or 1
#else
typedef total access;
#endif

// exponential_up_to : exponent above which Boltzmann factors are continued linearly
#define SALT const total salt_factor, const total exponential_up_to, global const access *restrict accesses, \
    global const total *restrict ions
#define SALT_TAKEN total salt_factor, total exponential_up_to, global const access *accesses, global const total *ions
#define SALT_PASSED salt_factor, exponential_up_to, accesses, ions

typedef struct { total charge, slope; } Salt;

// Charge of ions at a node, in the unit of the equation, and its derivative. ions : (N_IONS, 2) charge and fraction
INLINE Salt salt_at(NodeIndex at, total potential, SALT_TAKEN) {
    Salt salt = {0, 0};
#if SALTED
    const total factor = salt_factor * accesses[at];
#if N_IONS
    for (int s = 0; s < N_IONS; ++s) {
        const total z = ions[2 * s], exponent = -z * potential, above = fmax(exponent - exponential_up_to, (total)0);
        const total density = ions[2 * s + 1] * exp(fmin(exponent, exponential_up_to));
        salt.charge -= factor * z * density * (1 + above);
        salt.slope += factor * z * z * density;
    }
#else
    salt.charge = factor * potential;
    salt.slope = factor;
#endif
#endif
    return salt;
}

INLINE total lacking(ColourGrid grid, Row row, int m, EDGES_TAKEN, SALT_TAKEN, global const total *potential) {
    const Stencil near = stencil_at(grid, row, m, EDGES_PASSED, potential);
    const total own = potential[row.own + m];
    return near.neighbours - near.coefficients * own - salt_at(row.own + m, own, SALT_PASSED).charge;
}

// Residuals at all nodes, without charges.
kernel void find_lacking(
    const ColourGrid grid, EDGES, SALT, global const total *restrict potential, global real *restrict lacks)
{
    TAKE_ROW(own, grid, ROW_OF(grid));
    if (!IS_INNER_PLANE(own)) return;
    for (int colour = 0; colour < 2; ++colour) {
        FOR_ROWS(j, own) {
            const Row row = row_at(own, colour, j, PLANE);
            FOR_NODES(m, own, row) {
                lacks[row.own + m] = (real)lacking(own, row, m, EDGES_PASSED, SALT_PASSED, potential);
            }
        }
    }
}

// Residuals at nodes with charges. One work-item per node.
kernel void find_lacking_at(
    const ColourGrid grid, EDGES, SALT, global const total *restrict potential,
    global const int4 *restrict ranges,    // (rows) first node and number of nodes of a row
    global const int *restrict charged,    // (n_charged, 3) i, j, k of inner nodes, each once
    global const total *restrict charges,  // (n_charged) in the unit of the equation
    global real *restrict lacks)
{
    const int4 range = ranges[get_global_id(2)];
    if (get_global_id(0) >= range.y) return;
    TAKE_ROW(own, grid, get_global_id(2));
    const int t = range.x + get_global_id(0);
    const int i = charged[3 * t], j = charged[3 * t + 1], k = charged[3 * t + 2];
    const Row row = row_at(own, (i + j + k) & 1, j, k);
    lacks[row.own + i / 2] = (real)(charges[t] + lacking(own, row, i / 2, EDGES_PASSED, SALT_PASSED, potential));
}

// Linearizes the salt term at a potential, at all inner nodes.
kernel void linearise(const ColourGrid grid, SALT, global const total *restrict potential, global real *restrict salt) {
    if (!IS_INNER_PLANE(grid)) return;
    for (int colour = 0; colour < 2; ++colour) {
        FOR_ROWS(j, grid) {
            const Row row = row_at(grid, colour, j, PLANE);
            FOR_NODES(m, grid, row) {
                salt[row.own + m] = (real)salt_at(row.own + m, potential[row.own + m], SALT_PASSED).slope;
            }
        }
    }
}

// Adds a multiple of a correction to the potential, at all inner nodes.
kernel void correct(
    const ColourGrid grid, const total share, global const real *restrict correction, global total *restrict potential)
{
    if (!IS_INNER_PLANE(grid)) return;
    for (int colour = 0; colour < 2; ++colour) {
        FOR_ROWS(j, grid) {
            const Row row = row_at(grid, colour, j, PLANE);
            FOR_NODES(m, grid, row) potential[row.own + m] += share * correction[row.own + m];
        }
    }
}
