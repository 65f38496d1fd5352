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
#define SALT_GIVEN {salt_factor, exponential_up_to, accesses, ions}

// Ions of an equation. species : (N_IONS, 2) charge and fraction
typedef struct {
    total factor, exponential_up_to;
    global const access *accesses;
    global const total *species;
} Ions;

typedef struct { total charge, slope; } Salt;

// Charge of ions at a node, in the unit of the equation, and its derivative.
INLINE Salt salt_at(NodeIndex at, total potential, Ions ions) {
    Salt salt = {0, 0};
#if SALTED
    const total factor = ions.factor * ions.accesses[at];
#if N_IONS
    for (int s = 0; s < N_IONS; ++s) {
        const total z = ions.species[2 * s], exponent = -z * potential;
        const total above = fmax(exponent - ions.exponential_up_to, (total)0);
        const total density = ions.species[2 * s + 1] * exp(fmin(exponent, ions.exponential_up_to));
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

INLINE total lacking(ColourGrid grid, Row row, int m, Edges edges, Ions ions, global const total *potential) {
    const Stencil near = stencil_at(grid, row, m, edges, potential);
    const total own = potential[row.own + m];
    return near.neighbours - near.coefficients * own - salt_at(row.own + m, own, ions).charge;
}

// Residuals at all nodes, without charges.
kernel void find_lacking(
    const ColourGrid grid, EDGES, SALT, global const total *restrict potential, global real *restrict lacks)
{
    const Edges edges = EDGES_GIVEN;
    const Ions dissolved = SALT_GIVEN;
    TAKE_ROW(own, grid, ROW_OF(grid));
    if (!IS_INNER_PLANE(own)) return;
    for (int colour = 0; colour < 2; ++colour) {
        FOR_ROWS(j, own) {
            const Row row = row_at(own, colour, j, PLANE);
            FOR_NODES(m, own, row) {
                lacks[row.own + m] = (real)lacking(own, row, m, edges, dissolved, potential);
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
    const Edges edges = EDGES_GIVEN;
    const Ions dissolved = SALT_GIVEN;
    const int4 range = ranges[get_global_id(2)];
    if (get_global_id(0) >= range.y) return;
    TAKE_ROW(own, grid, get_global_id(2));
    const int t = range.x + get_global_id(0);
    const int i = charged[3 * t], j = charged[3 * t + 1], k = charged[3 * t + 2];
    const Row row = row_at(own, (i + j + k) & 1, j, k);
    lacks[row.own + i / 2] = (real)(charges[t] + lacking(own, row, i / 2, edges, dissolved, potential));
}

// Linearizes the salt term at a potential, at all inner nodes.
kernel void linearise(const ColourGrid grid, SALT, global const total *restrict potential, global real *restrict salt) {
    const Ions dissolved = SALT_GIVEN;
    if (!IS_INNER_PLANE(grid)) return;
    for (int colour = 0; colour < 2; ++colour) {
        FOR_ROWS(j, grid) {
            const Row row = row_at(grid, colour, j, PLANE);
            FOR_NODES(m, grid, row) {
                salt[row.own + m] = (real)salt_at(row.own + m, potential[row.own + m], dissolved).slope;
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
