// One step of all structures from the sums at their trials: each decides whether the trial becomes its base, finds a
// direction, and moves to the next trial. A work-group owns a chunk of atoms of one structure (third dimension), ROUND of
// them at a time; all groups of a structure decide for themselves, alike, and the first one keeps the state.
#include "common/real.clh"
#include "minimize/state.clh"
#include "minimize/decide.clh"
#include "minimize/history.clh"
#include "minimize/sums.clh"
#include "energy/results.clh"

#ifndef ROUND
#error "ROUND: atoms that a group moves at a time"
#endif

kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void step_on(
    const int n_atoms,
    const int n_rows,                           // energies before the Born radii in the results, of atoms or tiles
    const int chunk_size,                       // atoms of a chunk, a multiple of ROUND
    const int n_chunks,                         // of the sums
    const int descent,                          // shared/descent
    const Stopping stopping,
    const real step,                            // A of a coordinate's unit
    global const real *restrict free,           // (n_atoms) 1, or 0 of atoms that stay
    global const real *restrict results,        // energy/results.clh
    global const fine4 *restrict parts,         // (n_structures, N_PARTS) by measure.cl
#if PRECONDITIONED
    global const real *restrict softened,       // (n_structures, n_atoms, 3) P g by measure.cl
    global const real *restrict changes,        // (n_structures, n_atoms, 3) z by measure.cl
#endif
    global const fine *restrict before,         // (n_structures, STATE_SIZE) minimize/state.clh
    global fine *restrict after,                // the same after this step
    global coordinate *restrict positions,      // (n_structures, n_atoms, 3) of the trials
    global coordinate *restrict base,           // (n_structures, n_atoms, 3)
    global real *restrict base_gradient,        // (n_structures, n_atoms, 3)
    global real *restrict directions,           // (n_structures, n_atoms, 3)
    global real *restrict history)              // (n_structures, 2 M, n_atoms, 3)
{
    local fine state[STATE_SIZE], by_s[M], by_z[M], kept_scale;
    local fine4 sums[N_ROWS], shared[N_ROWS * SHARES];
    local Decision decision;
    local real moves[3 * ROUND];
    const int item = get_local_id(0), structure = get_global_id(2), chunk = get_group_id(0);
    for (int k = item; k < STATE_SIZE; k += GROUP) state[k] = before[(size_t)structure * STATE_SIZE + k];
    add_chunks(parts + (size_t)structure * N_PARTS(n_chunks), n_chunks, shared, sums);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item == 0) decision = decide(state, sums, descent, stopping);
    barrier(CLK_LOCAL_MEM_FENCE);
    const Decision now = decision;
    const bool moves_base = now.action == ACCEPT || now.action == ARRIVE;
    if (moves_base) remember(state, sums, now);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (chunk == 0)
        for (int k = item; k < STATE_SIZE; k += GROUP) after[(size_t)structure * STATE_SIZE + k] = state[k];
    if (now.action == STAY) return;
    const bool plain = is_plain(state, descent, stopping);
    if (item == 0) kept_scale = coefficients(state, plain, by_s, by_z);
    barrier(CLK_LOCAL_MEM_FENCE);
    const real scale = descent == FIRE ? now.scale : kept_scale;
    const real keep = now.keep, share = state[SHARE];
    const Results own = results_of((global real *)results, structure, n_rows, n_atoms);
    const size_t start = (size_t)structure * 3 * n_atoms;
    global real *steps = history + history_start(structure, n_atoms), *all_z = steps + (size_t)M * 3 * n_atoms;
    const int end = min(n_atoms, (chunk + 1) * chunk_size);
    for (int first = chunk * chunk_size; first < end; first += ROUND) {
        const int n_moves = 3 * min(ROUND, end - first);
        for (int k = item; k < n_moves; k += GROUP) {
            const size_t of_atom = 3 * (size_t)first + k, at = start + of_atom;
            if (now.action == RETRY) {
                moves[k] = directions[at];
                continue;
            }
            real g = base_gradient[at], s = 0, z = 0;
            if (moves_base) {
                const real g0 = g;
                g = free[first + k / 3] * bounded(own.gradient[of_atom]);
                s = coordinate_difference(positions[at], base[at], step);
#if PRECONDITIONED
                z = changes[at];
#else
                z = g - g0;
#endif
                base[at] = positions[at];
                base_gradient[at] = g;
            }
#if PRECONDITIONED
            real move = -scale * (plain ? g : softened[at]);
#else
            real move = keep * s - scale * g;
#endif
            #pragma unroll
            for (int i = 0; i < M; ++i) {  // all, so that reading need not wait; coefficients of those not stored are 0
                const size_t pair = (size_t)i * 3 * n_atoms + of_atom;
                const real s_i = i == now.entry ? s : steps[pair], z_i = i == now.entry ? z : all_z[pair];
                move -= (real)by_s[i] * s_i + (real)by_z[i] * z_i;
            }
            if (now.entry >= 0) {
                const size_t pair = (size_t)now.entry * 3 * n_atoms + of_atom;
                steps[pair] = s;
                all_z[pair] = z;
            }
            moves[k] = move;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = item; k < n_moves && now.action != ARRIVE; k += GROUP) {
            const size_t at = start + 3 * (size_t)first + k;
            const real x = moves[k / 3 * 3], y = moves[k / 3 * 3 + 1], z = moves[k / 3 * 3 + 2];
            const real length2 = x * x + y * y + z * z, most = stopping.most_step;
            const real move = length2 > most * most ? moves[k] * (most / sqrt(length2)) : moves[k];
            directions[at] = move;
            positions[at] = shifted(base[at], share * move, step);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
