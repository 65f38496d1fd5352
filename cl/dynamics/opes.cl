// The OPES bias from the densities of rows, stored in the bytes of all rows; docs/theory/sampling.md.
#include "common/real.clh"
#include "dynamics/bodies.clh"

#ifndef N_VARIABLES
#error "N_VARIABLES: dimensions of the grid, 1 to 3"
#endif
#define CORNERS (1 << N_VARIABLES)

// Logarithm of q at a node, and its derivatives; bit k selects that by variable k. ratios: derivatives of q divided by
// q
INLINE void derivatives_of_log(fine log_q, const fine *ratios, fine factor, global fine *found) {
    found[0] = factor * log_q;
    for (int k = 0; k < N_VARIABLES; ++k) found[1 << k] = factor * ratios[1 << k];
#if N_VARIABLES > 1
    for (int k = 0; k < N_VARIABLES; ++k)
        for (int l = k + 1; l < N_VARIABLES; ++l) {
            const int both = 1 << k | 1 << l;
            found[both] = factor * (ratios[both] - ratios[1 << k] * ratios[1 << l]);
        }
#endif
#if N_VARIABLES > 2
    const fine pairs = ratios[3] * ratios[4] + ratios[5] * ratios[2] + ratios[6] * ratios[1];
    found[7] = factor * (ratios[7] - pairs + 2 * ratios[1] * ratios[2] * ratios[4]);
#endif
}

// Maximum or sum over the work-items of a group.
INLINE fine of_group(fine own, bool greatest, local fine *memory) {
    const int item = get_local_id(0);
    memory[item] = own;
    barrier(CLK_LOCAL_MEM_FENCE);
    fine found = memory[0];
    for (int k = 1; k < GROUP; ++k) found = greatest ? fmax(found, memory[k]) : found + memory[k];
    barrier(CLK_LOCAL_MEM_FENCE);
    return found;
}

// Inverse mean of the density over the explored region, after Gaussians were added. One work-group per grid (second
// dimension).
kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void measure_density(
    const int n_nodes,
    global const int *restrict owners,         // (n_grids) row that contains the density
    global const real *restrict temperatures,  // (all rows) [K]
    global const ulong *restrict densities,    // (all rows) byte offset of a row's density
    global const uchar *restrict bytes,        // of all rows
    const fine barrier_height,                 // [kcal/mol]
    global fine *restrict inverses)            // (all rows) 1 / mean density over the explored region
{
    local fine memory[GROUP];
    const int item = get_local_id(0), owner = owners[get_global_id(1)];
    global const fine *density = (global const fine *)(bytes + densities[owner]);
    fine most = 0, explored = 0, sum = 0;
    for (int node = item; node < n_nodes; node += GROUP) most = fmax(most, density[(size_t)node * CORNERS]);
    most = of_group(most, true, memory) * exp(-barrier_height / (BOLTZMANN * temperatures[owner]));
    for (int node = item; node < n_nodes; node += GROUP) {
        const fine here = density[(size_t)node * CORNERS];
        if (here > 0 && here >= most) {
            sum += here;
            explored += 1;
        }
    }
    sum = of_group(sum, false, memory);
    explored = of_group(explored, false, memory);
    if (item == 0) inverses[owner] = sum > 0 ? explored / sum : (fine)0;
}

// Computes biases from densities. One work-item per node (first dimension) and grid (second).
kernel void bias_of_density(
    const int n_nodes,
    global const int *restrict owners,         // (n_grids) row that contains the density
    global const real *restrict temperatures,  // (all rows) [K]
    global const ulong *restrict densities,    // (all rows) byte offset of a row's density
    global const ulong *restrict grids,        // (all rows) byte offset of its bias
    global uchar *bytes,                       // of all rows
    const fine barrier_height,                 // [kcal/mol]
    const fine inverse_factor,                 // 1 / bias factor; 0 for k_B T / barrier
    global const fine *restrict inverses)      // (all rows) from measure_density
{
    const int node = get_global_id(0), owner = owners[get_global_id(1)];
    if (node >= n_nodes) return;
    global const fine *density = (global const fine *)(bytes + densities[owner]) + (size_t)node * CORNERS;
    global fine *grid = (global fine *)(bytes + grids[owner]) + (size_t)node * CORNERS;
    const fine kt = BOLTZMANN * temperatures[owner], inverse = inverses[owner];
    const fine share = fmax((fine)0, 1 - (inverse_factor > 0 ? inverse_factor : kt / barrier_height));
    const fine log_least = share > 0 ? -barrier_height / (share * kt) : (fine)0;
    const fine q = density[0] * inverse + exp(log_least);
    fine ratios[CORNERS];
    for (int bits = 1; bits < CORNERS; ++bits) ratios[bits] = q > 0 ? density[bits] * inverse / q : (fine)0;
    derivatives_of_log(fmax(log(q), log_least), ratios, share * kt, grid);
}
