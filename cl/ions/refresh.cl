// Greedy placement of ions on a grid of potentials; derivation: docs/theory/ions.md, section 3.
//
// Points closed to ions are NaN, so that comparisons never select them. The map is divided into blocks of points. For
// each sign of charge, a block stores its best known point and a lower bound for all of its points. `refresh` updates
// both for the latest ion. A block may contain the next ion if its bound does not exceed the best known energy of all
// blocks. Such blocks are updated in one pass: add the potential of each missing ion, exclude its neighbourhood, find
// the lowest energies. `choose` takes the lowest of all blocks. Every point receives every ion in the order of
// placement, so the result is bitwise equal to that of updating the whole map for each ion. Other blocks are updated
// later, several ions at a time.
#include "common/real.clh"
#include "ions/points.clh"
#include "ions/block.clh"

// Squared distance between a point and the nearest point of a block.
INLINE real nearest2_of_block(int4 corner, real4 point, real4 spacing) {
    const real4 low = ((real4)(corner.x, corner.y, corner.z, 0) - point) * spacing;
    const real4 high = low + (real4)(BLOCK_X - 1, BLOCK_Y - 1, BLOCK_Z - 1, 0) * spacing;
    const real4 gap = fmax(fmax(low, -high), (real)0);
    return dot(gap.xyz, gap.xyz);
}

// Updates the bounds and best points of a block for the latest ion, for each sign of charge. Returns true if the block
// may contain the next ion. The potential of a distant ion is its value at the centre of the block, a linear term, and
// a remainder. The second derivatives of the remainder are at most 2 / r^3 and at least -1 / r^3. Linear terms of
// several ions partly cancel.
INLINE int move_on(
    int block, int n_blocks, int4 corner, real4 spacing, real reach2, real4 ion, real charge, int side, real threshold,
    global real *bounds, global real4 *slopes, global real4 *best)
{
    global real *bound = bounds + block;
    if (bound[0] == INFINITY && bound[n_blocks] == INFINITY) return 0;
    const real4 half_block = (real)0.5 * (real4)(BLOCK_X - 1, BLOCK_Y - 1, BLOCK_Z - 1, 0) * spacing;
    const real4 d = ((real4)(corner.x, corner.y, corner.z, 0) - ion) * spacing + half_block;
    const real4 gap = fmax(fabs(d) - half_block, (real)0), reach = fabs(d) + half_block;
    const real nearest2 = dot(gap.xyz, gap.xyz), farthest2 = dot(reach.xyz, reach.xyz);
    const real extent2 = dot(half_block, half_block);
    // For nearer blocks, the line from the centre to an allowed point may pass closer to the ion than that point.
    const int far = nearest2 > fmax(extent2, reach2);
    global real4 *points[2] = {best + block, best + n_blocks + block};
    const real4 r2 = (real4)(
        far ? dot(d.xyz, d.xyz) : farthest2, fmax(nearest2, reach2), distance2(*points[0], ion, spacing),
        distance2(*points[1], ion, spacing));
    const real4 inv_r = (real)1 / sqrt(r2);

    real4 slope = slopes[block];
    if (far) slope -= charge * inv_r.x * inv_r.x * inv_r.x * d;
    const real change = fabs(slope.x) * half_block.x + fabs(slope.y) * half_block.y + fabs(slope.z) * half_block.z;
    const real rest = fabs(charge) * extent2 * inv_r.y * inv_r.y * inv_r.y;
    for (int s = 0; s < 2; ++s) {
        const real q = s ? -charge : charge;
        real least = q * (far || q > 0 ? inv_r.x : inv_r.y);
        if (far) least -= q > 0 ? (real)0.5 * rest : rest;
        const real before = bound[s * n_blocks];
        bound[s * n_blocks] =
            farthest2 <= reach2 ? INFINITY : before + least - SLACK * (fabs(before) + fabs(least) + change);
        const real at2 = s ? r2.w : r2.z;
        points[s]->w = at2 <= reach2 ? INFINITY : points[s]->w + q * (s ? inv_r.w : inv_r.z);
    }
    slopes[block] = slope;
    return bound[side * n_blocks] < INFINITY && bound[side * n_blocks] - change <= threshold;
}

// Lowest energies of unit charges of each sign in every lane, and the indices of these points.
typedef struct { realv energy[2]; maskv number[2]; } Lowest;

INLINE void look_at(Lowest *lowest, realv potential, int number) {
    #pragma unroll
    for (int s = 0; s < 2; ++s) {
        const realv energy = s ? -potential : potential;
        const maskv lower = energy < lowest->energy[s];
        lowest->energy[s] = CHOOSE(lowest->energy[s], energy, lower);
        lowest->number[s] = lower ? (maskv)number : lowest->number[s];
    }
}

// Lowest energy over all lanes and the index of its point, the smallest among equals.
INLINE void lowest_lane(const Lowest *lowest, int s, local real *energy, local int *number) {
    real energies[WIDTH];
    SAME_BITS numbers[WIDTH];
    STORE(lowest->energy[s], 0, energies);
    STORE(lowest->number[s], 0, numbers);
    *energy = INFINITY;
    *number = NOWHERE;
    for (int lane = 0; lane < WIDTH; ++lane) {
        const int own = (int)numbers[lane] + lane;
        if (energies[lane] < *energy || (energies[lane] == *energy && own < *number)) {
            *energy = energies[lane];
            *number = own;
        }
    }
}

// Adds the ions from `first` on to a work-item's part of a block, and finds its lowest points.
INLINE void add_ions(
    Lowest *lowest, int item, int4 corner, int4 blocks, real4 spacing, real reach2, int first, int last,
    global const real4 *ions, global const real *charges, global real *map)
{
    Own own;
    for (int s = 0; s < 2; ++s) {
        lowest->energy[s] = INFINITY;
        lowest->number[s] = NOWHERE;
    }
    for (int start = 0; start < N_ROWS; start += NY * ROW_STEP) {
        load_rows(&own, start, item, corner, blocks, map);
        for (int j = first; j < last; ++j) {
            const real4 ion = ions[j];
            add_ion(&own, ion, charges[j], spacing);
            if (nearest2_of_block(corner, ion, spacing) <= reach2) exclude(&own, ion, spacing, reach2);
        }
        if (last > first) store_rows(&own, map);
        #pragma unroll
        for (int b = 0; b < NY; ++b) {
            #pragma unroll
            for (int a = 0; a < NX; ++a)
                look_at(lowest, own.potential[b][a], row_of(start, b, item) * BLOCK_X + first_x(item) + STRIDE(a));
        }
    }
}

// A work-group owns every n_groups-th block. Each work-item updates the bounds of one of them. Then the whole group
// updates the blocks that may contain the next ion.
kernel void refresh(
    const int4 blocks,                     // number of blocks along x, y, z
    const int n_blocks,
    const real4 spacing,                   // [A]
    const real reach2,                     // squared distance between ions [A^2]
    global const int *restrict state,      // number of ions placed; 1 if no point was left for the next
    global const real *restrict threshold, // upper bound for the lowest energy of a unit charge of the next ion's sign
    global const real4 *restrict ions,     // (n_ions) x, y, z [steps]
    global const real *restrict charges,   // (n_ions) [kcal A/mol/e]
    global real *restrict map,             // (points, padded) potential [kcal/mol/e]; NaN at excluded points
    global int *restrict seen,             // (n_blocks) number of ions added to the points of a block
    global real *restrict bounds,          // (2, n_blocks) by sign of charge [kcal/mol]
    global real4 *restrict slopes,         // (n_blocks) linear terms not included in the bounds, at the centre [kcal/mol/A]
    global real4 *restrict best)           // (2, n_blocks) x, y, z [steps], energy of a unit charge [kcal/mol]
{
    local int stale[GROUP];
    local real energies[2 * GROUP];
    local int numbers[2 * GROUP];
    const int placed = state[0], full = state[1];
    const int item = get_local_id(0), group = get_group_id(0), n_groups = get_num_groups(0);
    if (full) return;

    const int own = item * n_groups + group;
    stale[item] = own < n_blocks;
    if (own < n_blocks && placed) {
        stale[item] = move_on(
            own, n_blocks, corner_of(own, blocks), spacing, reach2, ions[placed - 1], charges[placed - 1],
            charges[placed] < 0, *threshold, bounds, slopes, best);
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);

    for (int k = 0; k < GROUP; ++k) {
        if (!stale[k]) continue;
        const int block = k * n_groups + group;
        const int4 corner = corner_of(block, blocks);
        Lowest lowest;
        add_ions(&lowest, item, corner, blocks, spacing, reach2, seen[block], placed, ions, charges, map);
        for (int s = 0; s < 2; ++s) lowest_lane(&lowest, s, &energies[s * GROUP + item], &numbers[s * GROUP + item]);
        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        for (int half_size = GROUP / 2; half_size > 0; half_size /= 2) {
            if (item < half_size) {
                for (int s = 0; s < 2; ++s) {
                    const int a = s * GROUP + item, b = a + half_size;
                    if (energies[b] < energies[a] || (energies[b] == energies[a] && numbers[b] < numbers[a])) {
                        energies[a] = energies[b];
                        numbers[a] = numbers[b];
                    }
                }
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        if (item == 0) {
            for (int s = 0; s < 2; ++s) {
                const int n = numbers[s * GROUP], row = n / BLOCK_X;
                const int4 at = corner + (int4)(n % BLOCK_X, row % BLOCK_Y, row / BLOCK_Y, 0);
                bounds[s * n_blocks + block] = energies[s * GROUP];
                best[s * n_blocks + block] = (real4)(at.x, at.y, at.z, energies[s * GROUP]);
            }
            seen[block] = placed;
            slopes[block] = 0;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
