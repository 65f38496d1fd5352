// The preconditioner of minimisation: inverses of the stiffness among the atoms of each block, from the bonded terms at some
// positions; docs/theory/minimize.md, section 2. A work-group a block of a structure (third dimension): work-items
// find springs, TEAM of each atom at a time, and add them to the rows of its axes.
#include "common/real.clh"
#include "minimize/state.clh"
#include "minimize/blocks.clh"
#include "minimize/springs.clh"

#ifndef LOCAL_BLOCK
#error "LOCAL_BLOCK: 1 where a block is inverted in local memory, 0 where it is kept"
#endif
#if LOCAL_BLOCK
#define MATRIX local
#define ROW_STEP (SIDE + 1)  // odd, so that a column is read from all banks of the memory at once
#else
#define MATRIX global
#define ROW_STEP SIDE
#endif

#define BATCH (GROUP > 1 ? 4 : 1)  // rows that a work-item has at a time
#if SIDE % (BATCH * PARTS)
#error "BLOCK, GROUP: a work-item has batches of rows of a block"
#endif

// Inverts a positive definite matrix in its place by the sweep operator (Goodnight, Am. Stat. 1979, 33, 149), for which its lower
// triangle suffices. least: a bound below its eigenvalues, which no pivot is less than but for rounding; column: (SIDE)
INLINE void invert(MATRIX real *matrix, real least, local real *column) {
    const int item = get_local_id(0), lane = item % LANES, part = item / LANES;
    for (int pivot = 0; pivot < SIDE; ++pivot) {
        for (int k = item; k < SIDE; k += GROUP) column[k] = matrix[k < pivot ? pivot * ROW_STEP + k : k * ROW_STEP + pivot];
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        const real inv = (real)1 / fmax(column[pivot], least);
        for (int first = part; first < SIDE; first += BATCH * PARTS) {
            realv entries[BATCH][STRIPS];  // all are read before any is written, so that reading need not wait
            #pragma unroll
            for (int n = 0; n < BATCH * STRIPS; ++n) {
                const int row = first + n / STRIPS * PARTS, k = (n % STRIPS * LANES + lane) * WIDTH;
                if (k <= row)
                    entries[n / STRIPS][n % STRIPS] = LOAD(row * ROW_STEP + k, matrix) - inv * column[row] * LOAD(k, column);
            }
            #pragma unroll
            for (int n = 0; n < BATCH * STRIPS; ++n) {
                const int row = first + n / STRIPS * PARTS, k = (n % STRIPS * LANES + lane) * WIDTH;
                if (k <= row) STORE(entries[n / STRIPS][n % STRIPS], row * ROW_STEP + k, matrix);
            }
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        for (int k = item; k < SIDE; k += GROUP)
            matrix[k < pivot ? pivot * ROW_STEP + k : k * ROW_STEP + pivot] = k == pivot ? -inv : inv * column[k];
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    }
    for (int row = part; row < SIDE; row += PARTS)
        for (int k = lane; k <= row; k += LANES) {
            const real entry = -matrix[row * ROW_STEP + k];
            matrix[row * ROW_STEP + k] = matrix[k * ROW_STEP + row] = entry;
        }
}

#define TEAM (GROUP < 4 * BLOCK ? 1 : 4)  // springs of an atom that are found side by side

// A spring as it adds to the rows of one of its atoms.
typedef struct {
    int places[4];              // of its atoms in the block, -1 of those in none, and of all where it does not count
    real own[3], slopes[4][3];  // stiffness times the slope by this atom, slopes by all
} Found;

INLINE void keep_spring(local Found *found, const Spring *spring, int member, int4 places) {
    if (!(spring->stiffness > 0)) return;
    const int where[4] = {places.x, places.y, places.z, places.w};
    const Vector own = spring->slopes[member];
    found->own[0] = (real)(spring->stiffness * own.x);
    found->own[1] = (real)(spring->stiffness * own.y);
    found->own[2] = (real)(spring->stiffness * own.z);
    for (int m = 0; m < 4; ++m) {
        found->places[m] = where[m];
        found->slopes[m][0] = (real)spring->slopes[m].x;
        found->slopes[m][1] = (real)spring->slopes[m].y;
        found->slopes[m][2] = (real)spring->slopes[m].z;
    }
}

// Adds a spring to the row of one axis of its atom.
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
    const real step,                              // A of a coordinate's unit
    const real least,                             // of all `rest`
    global const real *restrict rest,             // (n_blocks, BLOCK) stiffness beside the springs [kcal/mol/A^2]
    global const int *restrict starts,            // (n_blocks * BLOCK + 1) first spring of each atom
    global const int4 *restrict members,          // (n_springs) atoms
    global const int4 *restrict places,           // (n_springs) their places in the block, -1 where they are in none
    global const int4 *restrict details,          // (n_springs) kind, first parameters, count, which member this atom is
    global const fine4 *restrict parameters,
    global const coordinate *restrict positions,  // (n_structures, n_atoms, 3)
    global fine *state,                           // (n_structures, STATE_SIZE) whose pairs are forgotten
    global real *inverses)                        // (n_structures, n_blocks, SIDE, SIDE) [A^2 mol/kcal]
{
    local real column[SIDE];
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
    for (int k = item; k < SIDE; k += GROUP) matrix[k * ROW_STEP + k] = rest[block * BLOCK + k / 3];
    global const int *own_starts = starts + block * BLOCK;
    int most = 0;
    for (int atom = 0; atom < BLOCK; ++atom) most = max(most, own_starts[atom + 1] - own_starts[atom]);
    for (int first = 0; first < most; first += TEAM) {
        for (int seat = item; seat < TEAM * BLOCK; seat += GROUP) {
            const int atom = seat / TEAM, k = own_starts[atom] + first + seat % TEAM;
            for (int m = 0; m < 4; ++m) found[seat].places[m] = -1;
            if (k >= own_starts[atom + 1]) continue;
            const int4 detail = details[k];
            Spring spring;
            find_spring(&spring, detail.x, members[k], parameters + detail.y, detail.z, from, step);
            keep_spring(found + seat, &spring, detail.w, places[k]);
        }
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        for (int row = item; row < SIDE; row += GROUP)
            for (int seat = row / 3 * TEAM; seat < (row / 3 + 1) * TEAM; ++seat)
                add_spring(matrix + row * ROW_STEP, found + seat, row % 3);
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    }
    invert(matrix, least, column);
#if LOCAL_BLOCK
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = item; k < SIDE * SIDE; k += GROUP) kept[k] = matrix[k / SIDE * ROW_STEP + k % SIDE];
#endif
    if (block == 0 && item == 0) own[STORED] = 0;
}
