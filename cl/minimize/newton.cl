// Truncated Newton: the direction d solves H d = -g by conjugate gradients, with H p from finite differences of the
// gradient along p. Evaluations alternate between two phases: TRIAL of a step, and CURVE at such a displaced point;
// docs/theory/newton.md. Each work-group owns a chunk of atoms of one structure (third dimension), as in step.clh.
// Instead of the residual r, w = P r is stored, with the preconditioner P of the base.
#include "common/real.clh"
#include "engine/arguments.clh"
#include "minimize/state.clh"
#include "minimize/decide.clh"
#include "minimize/sums.clh"
#include "energy/results.clh"

#if M != 1
#error "M: 1, so that the history of a structure holds w and the direction p of the conjugate gradients"
#endif
#if !PRECONDITIONED
#error "truncated Newton has a preconditioner"
#endif

#define GO_ON 5  // another iteration of conjugate gradients
#define TURN 6   // the direction is complete; evaluate its trial
#define MOST_INNER 60
#define PROBE (fine)(REAL_BITS == 64 ? 1e-5 : 3e-3)  // largest displacement of an atom along p [A]
#define LEAST_FORCING (fine)0.01
#define MOST_FORCING (fine)0.5

// Gradient component k of the structure at the evaluated positions.
#define GRADIENT_AT(k) (free[(k) / 3] * bounded(own.gradient[k]))

// Sums of p.q, w.q, q.P q and g.P g over a chunk, with q = (g - g0) / offset.
kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void measure_curvature(
    const int n_atoms,
    const int n_energies,                        // energies that precede the Born radii in the results, per atom or per tile
    const int n_results,                         // reals per conformation in the results
    const int chunk_size,                        // atoms per chunk
    const int n_chunks,                          // chunks of this structure; the launch may include larger molecules
    global const fine *restrict state,           // (n_structures, STATE_SIZE)
    global const real *restrict base_gradient,   // (n_structures, n_atoms, 3)
    global const real *restrict history,         // (n_structures, 2, n_atoms, 3) w, p
    global const real *restrict softened,        // (n_structures, 2, n_atoms, 3) P g from measure.clh
    global const real *restrict changes,         // (n_structures, 2, n_atoms, 3) P (g - g0) from measure.clh
    global const real *restrict free,            // (n_atoms) 0 for frozen atoms, else 1
    global const real *restrict results,         // energy/results.clh
    global fine4 *restrict sums)                 // (n_structures, n_chunks)
{
    SERVES_ROWS(measure_curvature)
    local fine scratch[4 * GROUP];
    const int item = get_local_id(0), structure = get_global_id(2), chunk = get_group_id(0);
    const int first = chunk * chunk_size, end = min(n_atoms, first + chunk_size);
    const fine offset = state[(size_t)structure * STATE_SIZE + OFFSET], inv = offset > 0 ? 1 / offset : (fine)0;
    const Results own = results_of((global real *)results, structure, n_results, n_energies, n_atoms);
    const size_t start = (size_t)structure * 3 * n_atoms;
    global const real *w = history + history_start(structure, n_atoms), *p = w + 3 * (size_t)n_atoms;
    fine4 sum = 0;
    for (int k = 3 * first + item; k < 3 * end; k += GROUP) {
        const fine g = GRADIENT_AT(k), q = (g - base_gradient[start + k]) * inv;
        const fine turned = of_both(changes, structure, k, n_atoms) * inv, soft = of_both(softened, structure, k, n_atoms);
        sum += (fine4)(p[k] * q, w[k] * q, q * turned, g * soft);
    }
    sum = over_group(sum, false, scratch);
    if (item == 0) sums[(size_t)structure * n_chunks + chunk] = sum;
}

// Decides after a point along p, by one work-item: the conjugate-gradient step length along p, and the factor of p in
// the next direction.
INLINE int bend(local fine *state, fine4 sums, Stopping stopping, fine *along, fine *keep) {
    const fine curvature = sums.x, rz = state[RESIDUAL];
    state[EVALUATIONS] += 1;
    state[INNER] += 1;
    if (!(curvature > (fine)1e-12 * rz)) {  // the curvature is not positive, or NaN
        *along = state[INNER] == 1 ? 1 : 0;
        return TURN;
    }
    // Steps beyond half of the maximum displacement would be truncated, and the quadratic model would not hold.
    if (state[FARTHEST] > (fine)0.25 * stopping.most_step * stopping.most_step) return TURN;
    *along = rz / curvature;
    const fine left = fmax(rz - 2 * *along * sums.y + *along * *along * sums.z, (fine)0);
    *keep = left / rz;
    state[RESIDUAL] = left;
    const fine rms2 = state[GRADIENT2] / gradient_bound2(state, stopping);  // in units of the tolerance
    const fine forcing = clamp((fine)0.1 * sqrt(sqrt(rms2)), LEAST_FORCING, MOST_FORCING);
    return left <= forcing * forcing * state[FIRST_RESIDUAL] || state[INNER] >= MOST_INNER ? TURN : GO_ON;
}

kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void step_newton(
    const int n_atoms,
    const int n_energies,                       // energies that precede the Born radii in the results, per atom or per tile
    const int n_results,                        // reals per conformation in the results
    const int chunk_size,                       // atoms per chunk
    const int n_chunks,                         // chunks of this structure; the launch may include larger molecules
    const int sharing,                          // groups that shared the preconditioner blocks of each chunk
    const int descent,                          // shared/descent
    const Stopping stopping,
    const real step,                            // length of a coordinate unit [A]
    global const real *restrict free,           // (n_atoms) 0 for frozen atoms, else 1
    global const real *restrict softened,       // (n_structures, 2, n_atoms, 3) P g from measure.clh
    global const real *restrict changes,        // (n_structures, 2, n_atoms, 3) P (g - g0) from measure.clh
    global const real *restrict results,        // energy/results.clh
    global const fine4 *restrict parts,         // (n_structures, N_PARTS) from measure.clh
    global const fine4 *restrict bends,         // (n_structures, n_chunks) from measure_curvature
    global const fine *restrict before,         // (n_structures, STATE_SIZE) minimize/state.clh
    global fine *restrict after,                // the state after this step
    global coordinate *restrict positions,      // (n_structures, n_atoms, 3) trial positions
    global coordinate *restrict base,           // (n_structures, n_atoms, 3)
    global real *restrict base_gradient,        // (n_structures, n_atoms, 3)
    global real *restrict directions,           // (n_structures, n_atoms, 3)
    global real *restrict history,              // (n_structures, 2, n_atoms, 3) w, p
    global real *restrict solutions,            // (n_structures, n_atoms, 3) d from conjugate gradients
    global fine *restrict reaches)              // (n_structures, 2, n_chunks) largest squared p and d of an atom
{
    SERVES_ROWS(step_newton)
    local fine state[STATE_SIZE];
    local fine4 sums[N_ROWS];
    local fine shared[N_ROWS * SHARED_ROW], scratch[4 * GROUP];
    local int chosen;
    local fine factors[2];
    const int item = get_local_id(0), structure = get_global_id(2), chunk = get_group_id(0);
    const Results own = results_of((global real *)results, structure, n_results, n_energies, n_atoms);
    for (int k = item; k < STATE_SIZE; k += GROUP) state[k] = before[(size_t)structure * STATE_SIZE + k];
    add_chunks(parts + (size_t)structure * N_PARTS(n_chunks, sharing), n_chunks, sharing, shared, sums);
    barrier(CLK_LOCAL_MEM_FENCE);
    const fine inv_offset = state[OFFSET] > 0 ? 1 / state[OFFSET] : (fine)0;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item == 0) {
        fine4 bent = 0;
        for (int k = 0; k < n_chunks; ++k) bent += bends[(size_t)structure * n_chunks + k];
        fine along = 0, keep = 0;
        if (state[PHASE] == CURVE && state[STOPPED] == STOP_RUNNING) chosen = bend(state, bent, stopping, &along, &keep);
        else chosen = decide(state, sums, descent, stopping).action;
        if (chosen == TURN) state[SHARE] = 1;
        if (chosen == ACCEPT && !is_ramp(state, descent, stopping)) {
            state[PHASE] = CURVE;
            state[INNER] = 0;
            state[RESIDUAL] = state[FIRST_RESIDUAL] = bent.w;
        } else if (chosen != GO_ON) state[PHASE] = TRIAL;
        factors[0] = along;
        factors[1] = keep;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const int action = chosen;
    const bool curves = state[PHASE] == CURVE, bent = action == GO_ON || action == TURN;
    const bool moves_base = action == ACCEPT || action == ARRIVE;
    const real along = (real)factors[0], keep = (real)factors[1], share = (real)state[SHARE], length = (real)state[LENGTH];
    // If d does not change any more, its length is known; it is scaled without changing its direction, which is
    // downhill.
    const bool fits = action != TURN || along != 0 || state[FARTHEST] <= stopping.most_step * stopping.most_step;
    const real whole = fits ? (real)1 : stopping.most_step * (real)inverse_root(state[FARTHEST]);
    if (chunk == 0)
        for (int k = item; k < STATE_SIZE; k += GROUP) after[(size_t)structure * STATE_SIZE + k] = state[k];
    if (action == STAY) return;
    global real *all_w = history + history_start(structure, n_atoms), *all_p = all_w + 3 * (size_t)n_atoms;
    fine longest_p2 = 0, longest_d2 = 0;
    const int end = min(n_atoms, (chunk + 1) * chunk_size);
    for (int atom = chunk * chunk_size + item; atom < end; atom += GROUP) {
        const size_t at = (size_t)structure * 3 * n_atoms + 3 * (size_t)atom;
        real v[3], d2 = 0;
        fine p2 = 0, all_d2 = 0;
        for (int axis = 0; axis < 3; ++axis) {
            const size_t own_k = 3 * (size_t)atom + axis, k = at + axis;
            real w = all_w[own_k], p = all_p[own_k], d = solutions[k];
            if (bent) {
                d += along * p;
                w -= along * (real)(of_both(changes, structure, own_k, n_atoms) * inv_offset);
                p = w + keep * p;
            }
            if (moves_base) {
                base[k] = positions[k];
                base_gradient[k] = (real)GRADIENT_AT(own_k);
                p = w = -of_both(softened, structure, own_k, n_atoms);
                d = 0;
            }
            all_w[own_k] = w;
            all_p[own_k] = p;
            solutions[k] = d;
            v[axis] = action == RETRY ? directions[k] : action == TURN ? whole * d : -length * base_gradient[k];
            d2 += v[axis] * v[axis];
            p2 += p * p;
            all_d2 += d * d;
        }
        longest_p2 = fmax(longest_p2, p2);
        longest_d2 = fmax(longest_d2, all_d2);
        if (curves || action == ARRIVE) continue;
        const real limit = action == RETRY || d2 <= stopping.most_step * stopping.most_step
                               ? (real)1 : stopping.most_step / sqrt(d2);
        for (int axis = 0; axis < 3; ++axis) {
            directions[at + axis] = limit * v[axis];
            positions[at + axis] = shifted(base[at + axis], share * limit * v[axis], step);
        }
    }
    const fine p2 = over_group((fine4)(longest_p2, 0, 0, 0), true, scratch).x;
    barrier(CLK_LOCAL_MEM_FENCE);
    const fine d2 = over_group((fine4)(longest_d2, 0, 0, 0), true, scratch).x;
    if (item > 0) return;
    reaches[(2 * (size_t)structure) * n_chunks + chunk] = p2;
    reaches[(2 * (size_t)structure + 1) * n_chunks + chunk] = d2;
}

// Moves to the next point along p if one is needed.
kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void probe_newton(
    const int n_atoms,
    const int chunk_size,                       // atoms per chunk
    const int n_chunks,                         // chunks of this structure; the launch may include larger molecules
    const real step,                            // length of a coordinate unit [A]
    global const fine *restrict reaches,        // (n_structures, 2, n_chunks) largest squared p and d of an atom
    global const real *restrict history,        // (n_structures, 2, n_atoms, 3) w, p
    global const coordinate *restrict base,     // (n_structures, n_atoms, 3)
    global coordinate *restrict positions,      // (n_structures, n_atoms, 3)
    global fine *state)                         // (n_structures, STATE_SIZE); only OFFSET and FARTHEST are written
{
    SERVES_ROWS(probe_newton)
    const int item = get_local_id(0), structure = get_global_id(2), chunk = get_group_id(0);
    global fine *own = state + (size_t)structure * STATE_SIZE;
    if (own[PHASE] != CURVE || own[STOPPED] != STOP_RUNNING) return;
    fine p2 = 0, d2 = 0;
    for (int k = 0; k < n_chunks; ++k) {
        p2 = fmax(p2, reaches[2 * (size_t)structure * n_chunks + k]);
        d2 = fmax(d2, reaches[(2 * (size_t)structure + 1) * n_chunks + k]);
    }
    const fine offset = PROBE * inverse_root(p2);
    if (chunk == 0 && item == 0) {
        own[OFFSET] = offset;
        own[FARTHEST] = d2;
    }
    global const real *p = history + history_start(structure, n_atoms) + 3 * (size_t)n_atoms;
    const size_t at = (size_t)structure * 3 * n_atoms;
    for (int k = 3 * chunk * chunk_size + item; k < 3 * min(n_atoms, (chunk + 1) * chunk_size); k += GROUP)
        positions[at + k] = shifted(base[at + k], offset * p[k], step);
}
