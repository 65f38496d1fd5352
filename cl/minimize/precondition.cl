// Preconditioner of minimizations: inverse stiffness matrices of blocks of atoms, from the bonded terms at given
// positions; docs/theory/minimize.md, section 2. One work-group per block and structure (third dimension): work-items
// compute springs, TEAM per atom at a time, and add them to the rows of its axes.
#include "common/real.clh"
#include "engine/arguments.clh"
#include "minimize/state.clh"
#include "minimize/blocks.clh"
#include "minimize/springs.clh"

#ifndef LOCAL_BLOCK
#error "LOCAL_BLOCK: 1 where a block is added up in local memory, 0 where it is kept"
#endif
#if LOCAL_BLOCK
#define MATRIX local
#define ROW_STEP (SIDE + 1)  // odd, to avoid bank conflicts between the rows to which work-items add
#else
#define MATRIX global
#define ROW_STEP SIDE
#endif

// Inverts a positive definite matrix by the sweep operator (Goodnight, Am. Stat. 1979, 33, 149). least: a lower bound
// of its eigenvalues, and of the pivots except for rounding; column: (2, SIDE); shares: whether to subtract the inverse
// of the first half alone, which the previous block also contains. After the first half of the pivots, it is in place
// with opposite sign.
#if GROUP > 1
// Each work-item has its entries in registers, and reads only the pivot column of the others. The result is written to
// `inverse_of`.
#define OWN_ROWS (SIDE / PARTS)
INLINE void invert(MATRIX const real *matrix, real least, local real *column, bool shares, global real *inverse_of) {
    const int item = get_local_id(0), lane = item % LANES, part = item / LANES;
    real entries[OWN_ROWS][STRIPS];
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    #pragma unroll
    for (int n = 0; n < OWN_ROWS * STRIPS; ++n)
        entries[n / STRIPS][n % STRIPS] = matrix[(n / STRIPS * PARTS + part) * ROW_STEP + n % STRIPS * LANES + lane];
#if !LOCAL_BLOCK
    barrier(CLK_GLOBAL_MEM_FENCE);  // the inverse overwrites its input
#endif
    #pragma unroll
    for (int strip = 0; strip < STRIPS; ++strip) {
        for (int pivot = strip * LANES; pivot < (strip + 1) * LANES; ++pivot) {
            if (pivot == SIDE / 2 && shares) {
                #pragma unroll
                for (int n = 0; n < OWN_ROWS * STRIPS; ++n) {
                    const int row = n / STRIPS * PARTS + part, k = n % STRIPS * LANES + lane;
                    if (k <= row && row < SIDE / 2) inverse_of[row * SIDE + k] = entries[n / STRIPS][n % STRIPS];
                }
            }
            local real *own = column + pivot % 2 * SIDE;  // others may still read the previous pivot column
            const bool has_column = lane == pivot % LANES;
            if (has_column) {
                #pragma unroll
                for (int n = 0; n < OWN_ROWS; ++n) own[n * PARTS + part] = entries[n][strip];
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            const real inv = (real)1 / fmax(own[pivot], least);
            real across[STRIPS];
            #pragma unroll
            for (int k = 0; k < STRIPS; ++k) across[k] = own[k * LANES + lane];
            #pragma unroll
            for (int n = 0; n < OWN_ROWS; ++n) {
                const bool is_pivot = n * PARTS + part == pivot;
                const real down = inv * own[n * PARTS + part];
                #pragma unroll
                for (int k = 0; k < STRIPS; ++k)
                    entries[n][k] = is_pivot ? inv * across[k] : entries[n][k] - down * across[k];
                if (has_column) entries[n][strip] = is_pivot ? -inv : down;
            }
        }
    }
    #pragma unroll
    for (int n = 0; n < OWN_ROWS * STRIPS; ++n) {
        const int row = n / STRIPS * PARTS + part, k = n % STRIPS * LANES + lane;
        if (k > row) continue;
        const real shared = shares && row < SIDE / 2 ? inverse_of[row * SIDE + k] : (real)0;
        inverse_of[row * SIDE + k] = inverse_of[k * SIDE + row] = shared - entries[n / STRIPS][n % STRIPS];
    }
}
#else
// In place; only the lower triangle is computed.
INLINE void invert_in_place(global real *matrix, real least, local real *column, bool shares, local real *first_half) {
    for (int pivot = 0; pivot < SIDE; ++pivot) {
        if (pivot == SIDE / 2 && shares)
            for (int row = 0; row < SIDE / 2; ++row)
                for (int k = 0; k <= row; ++k) first_half[row * (SIDE / 2) + k] = matrix[row * SIDE + k];
        for (int k = 0; k < SIDE; ++k) column[k] = matrix[k < pivot ? pivot * SIDE + k : k * SIDE + pivot];
        const real inv = (real)1 / fmax(column[pivot], least);
        for (int row = 0; row < SIDE; ++row) {
            realv entries[STRIPS];  // all loads before any store, to overlap their latency
            #pragma unroll
            for (int n = 0; n < STRIPS; ++n)
                if (n * WIDTH <= row)
                    entries[n] = LOAD(row * SIDE + n * WIDTH, matrix) - inv * column[row] * LOAD(n * WIDTH, column);
            #pragma unroll
            for (int n = 0; n < STRIPS; ++n)
                if (n * WIDTH <= row) STORE(entries[n], row * SIDE + n * WIDTH, matrix);
        }
        for (int k = 0; k < SIDE; ++k)
            matrix[k < pivot ? pivot * SIDE + k : k * SIDE + pivot] = k == pivot ? -inv : inv * column[k];
    }
    for (int row = 0; row < SIDE; ++row)
        for (int k = 0; k <= row; ++k) {
            const real shared = shares && row < SIDE / 2 ? first_half[row * (SIDE / 2) + k] : (real)0;
            const real entry = shared - matrix[row * SIDE + k];
            matrix[row * SIDE + k] = matrix[k * SIDE + row] = entry;
        }
}
#endif

#define TEAM (GROUP < 4 * BLOCK ? 1 : 4)  // springs per atom that are computed concurrently

// Contribution of a spring to the rows of one of its atoms.
typedef struct {
    int places[4];              // indices of its atoms in the block, negative for other atoms, and for all atoms if the spring is skipped
    real own[3], slopes[4][3];  // stiffness times the derivative by this atom, derivatives by all atoms
} Found;

// stands: indices of its atoms in the order; the block has BLOCK of these, starting at `begin`
INLINE void keep_spring(local Found *found, const Spring *spring, int member, int4 stands, int begin) {
    if (!(spring->stiffness > 0)) return;
    const int where[4] = {stands.x - begin, stands.y - begin, stands.z - begin, stands.w - begin};
    const Vector own = spring->slopes[member];
    found->own[0] = (real)(spring->stiffness * own.x);
    found->own[1] = (real)(spring->stiffness * own.y);
    found->own[2] = (real)(spring->stiffness * own.z);
    for (int m = 0; m < 4; ++m) {
        found->places[m] = where[m] < BLOCK ? where[m] : -1;
        found->slopes[m][0] = (real)spring->slopes[m].x;
        found->slopes[m][1] = (real)spring->slopes[m].y;
        found->slopes[m][2] = (real)spring->slopes[m].z;
    }
}

// Indices of a spring's atoms in the order; -1 for frozen atoms, too.
INLINE int4 of_free(int4 stands, int4 atoms, global const real *free) {
    return (int4)(
        free[atoms.x] > 0 ? stands.x : -1, free[atoms.y] > 0 ? stands.y : -1, free[atoms.z] > 0 ? stands.z : -1,
        free[atoms.w] > 0 ? stands.w : -1);
}

// Adds a spring to the matrix row of one axis of its atom.
INLINE void add_spring(MATRIX real *row, local const Found *found, int axis) {
    const real own = found->own[axis];
    for (int m = 0; m < 4; ++m) {
        if (found->places[m] < 0) continue;
        MATRIX real *entries = row + 3 * found->places[m];
        for (int k = 0; k < 3; ++k) entries[k] += own * found->slopes[m][k];
    }
}

kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void build_blocks(
    const int n_atoms,
    const int n_blocks,
    const real step,                              // length of a coordinate unit [A]
    const real least,                             // minimum of all `rest`
    const real first_stiffness,                   // added to `rest` while no gradient is known [kcal/mol/A^2]
    const real reach,                             // root mean square gradient divided by the stiffness that is added later [A]
    global const real *restrict rest,             // (n_blocks, BLOCK) stiffness in addition to springs [kcal/mol/A^2]
    global const int *restrict starts,            // (n_blocks * BLOCK / 2 + BLOCK / 2 + 1) index of each atom's first entry, in order
    global const int *restrict entries,           // 4 spring + index of this atom among its members
    global const int4 *restrict members,          // (n_springs) atoms
    global const int4 *restrict stands,           // (n_springs) their indices in the order, -1 if absent
    global const int4 *restrict details,          // (n_springs) kind, index of the first parameter, count, 0
    global const fine4 *restrict parameters,
    global const real *restrict free,             // (n_atoms) 0 for frozen atoms, else 1
    global const coordinate *restrict positions,  // (n_structures, n_atoms, 3)
    global fine *state,                           // (n_structures, STATE_SIZE); stored pairs are cleared
    global real *inverses)                        // (n_structures, n_blocks, SIDE, SIDE) [A^2 mol/kcal]
{
    SERVES_ROWS(build_blocks)
    local real column[2 * SIDE];
#if GROUP == 1
    local real first_half[SIDE * SIDE / 4];
#endif
    local Found found[TEAM * BLOCK];
#if LOCAL_BLOCK
    local real matrix[SIDE * ROW_STEP];
#endif
    const int item = get_local_id(0), structure = get_global_id(2), block = get_group_id(0);
    global fine *own = state + (size_t)structure * STATE_SIZE;
    if (own[STOPPED] != STOP_RUNNING || own[PHASE] != TRIAL) return;
    global real *kept = inverses + ((size_t)structure * n_blocks + block) * SIDE * SIDE;
#if !LOCAL_BLOCK
    global real *matrix = kept;
#endif
    global const coordinate *from = positions + (size_t)structure * 3 * n_atoms;
    for (int k = item; k < SIDE * ROW_STEP; k += GROUP) matrix[k] = 0;
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    const real stiffer = own[EVALUATIONS] > 0 ? sqrt((real)(own[GRADIENT2] / own[MOVING])) / reach : first_stiffness;
    for (int k = item; k < SIDE; k += GROUP) matrix[k * ROW_STEP + k] = rest[block * BLOCK + k / 3] + stiffer;
    const int begin = block * (BLOCK / 2);
    global const int *own_starts = starts + begin;
    int most = 0;
    for (int atom = 0; atom < BLOCK; ++atom) most = max(most, own_starts[atom + 1] - own_starts[atom]);
    for (int first = 0; first < most; first += TEAM) {
        for (int seat = item; seat < TEAM * BLOCK; seat += GROUP) {
            const int atom = seat / TEAM, k = own_starts[atom] + first + seat % TEAM;
            for (int m = 0; m < 4; ++m) found[seat].places[m] = -1;
            if (k >= own_starts[atom + 1]) continue;
            const int entry = entries[k], number = entry / 4;
            const int4 detail = details[number];
            Spring spring;
            const int4 atoms = members[number], stand = of_free(stands[number], atoms, free);
            const int all_stands[4] = {stand.x, stand.y, stand.z, stand.w};
            if (all_stands[entry % 4] < 0) continue;
            find_spring(&spring, detail.x, atoms, parameters + detail.y, detail.z, from, step);
            keep_spring(found + seat, &spring, entry % 4, stand, begin);
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        for (int row = item; row < SIDE; row += GROUP)
            for (int seat = row / 3 * TEAM; seat < (row / 3 + 1) * TEAM; ++seat)
                add_spring(matrix + row * ROW_STEP, found + seat, row % 3);
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    }
#if GROUP > 1
    invert(matrix, least, column, block > 0, kept);
#else
    invert_in_place(matrix, least, column, block > 0, first_half);
#endif
    if (block == 0 && item == 0) own[STORED] = 0;
}
