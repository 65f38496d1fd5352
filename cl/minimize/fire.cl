// FIRE (Bitzek et al. 2006) with unit masses: the step is dt v, and LENGTH is dt; both increase downhill. Every trial
// becomes the base. Each work-group owns a chunk of atoms of one structure (third dimension); all groups of a structure
// make the same decision.
#include "common/real.clh"
#include "engine/arguments.clh"
#include "minimize/method.clh"

#define FIRST_MIX (fine)0.1  // fraction of the gradient mixed into the velocity
#define LEAST_DT (fine)1e-4  // A (mol/kcal)^1/2
#define MOST_DT (fine)0.03

// Factor of the last step s in the next one; `scale` returns that of g. power: -g.s, s2: s.s
INLINE fine accelerate(local fine *state, fine power, fine s2, fine g2, fine *scale) {
    const fine dt = state[LENGTH];
    const bool downhill = power > 0;
    state[DOWNHILL] = downhill ? state[DOWNHILL] + 1 : 0;
    if (!downhill) {
        state[LENGTH] = fmax(dt / 2, LEAST_DT);
        state[MIX] = FIRST_MIX;
    } else if (state[DOWNHILL] > 5) {
        state[LENGTH] = fmin((fine)1.1 * dt, MOST_DT);
        state[MIX] *= (fine)0.99;
    }
    const fine now = state[LENGTH], mix = state[MIX], ratio = downhill ? now / dt : 0;
    // Length of the step ratio s - dt^2 g before mixing with the gradient.
    const fine length2 = ratio * ratio * s2 + 2 * ratio * now * now * power + now * now * now * now * g2;
    *scale = (1 - mix) * now * now + (g2 > 0 ? mix * sqrt(length2 / g2) : 0);
    return (1 - mix) * ratio;
}

kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void step_fire(METHOD_PARAMETERS) {
    SERVES_ROWS(step_fire)
    local Memory memory;
    local fine keep, scale;
    local int action;
    const int structure = get_global_id(2);
    const Method method = METHOD_GIVEN;
    take(&memory, structure, &method);
    if (get_local_id(0) == 0) {
        local fine *state = memory.state;
        local const fine4 *all = memory.sums;
        const bool first = state[EVALUATIONS] == 0;
        action = STAY;
        if (state[STOPPED] == STOP_RUNNING) {
            fine by_g;
            state[EVALUATIONS] += 1;
            action = accept(state, all, stopping, false);
            keep = accelerate(state, first ? 0 : -all[M].z, all[M + 1].w, all[M].x, &by_g);
            scale = by_g;
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    keep_state(&memory, structure, &method);
    if (action != STAY) go_on(structure, action, keep, scale, &method);
}
