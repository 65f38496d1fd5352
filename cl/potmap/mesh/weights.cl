// Weights of the NODES nodes around each charge along each axis, by polynomials in the fraction of a spacing. Along x
// BLOCK zeros are on either side, so that a row of nodes can be read from any beginning.
#include "common/real.clh"
#include "potmap/mesh/spread.clh"

kernel void node_weights(
    const int n_atoms,
    global const real4 *restrict placed,    // (n_atoms) fraction less 1/2 along x, y, z; charge
    global const real *restrict pieces,     // (NODES, TERMS) powers, lowest first
    global real *restrict weights)          // (n_atoms, WEIGHTS)
{
    const int atom = get_global_id(0);
    if (atom >= n_atoms) return;
    global real *own = weights + (size_t)atom * WEIGHTS;
    for (int k = 0; k < BLOCK; ++k) own[k] = own[BLOCK + NODES + k] = 0;
    const real4 fractions = placed[atom];
    for (int axis = 0; axis < 3; ++axis) {
        const real t = axis == 0 ? fractions.x : axis == 1 ? fractions.y : fractions.z;
        global real *along = axis == 0 ? own + BLOCK : own + Y_WEIGHTS + (axis - 1) * NODES;
        for (int node = 0; node < NODES; ++node) {
            global const real *powers = pieces + node * TERMS;
            real weight = powers[TERMS - 1];
            for (int k = TERMS - 2; k >= 0; --k) weight = weight * t + powers[k];
            along[node] = axis == 2 ? fractions.w * weight : weight;
        }
    }
}
