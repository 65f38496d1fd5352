// Greedy placement of ions on a grid of potentials; why so: docs/theory/ions.md, section 3.
//
// Where no ion may stand the map holds NaN, which no comparison takes. It is cut into blocks of points. For either sign
// of charge a block keeps the best of its points known so far and a bound that none of its points is below. `refresh`
// moves both on by the ion just placed; blocks that may hold the next ion, their bound being no higher than the best
// point known anywhere, are brought up to date in one pass: add each ion they have not seen, exclude its neighbourhood,
// find the lowest energies. `choose` takes the lowest of all blocks. Every point gets every ion in the order of
// placement, so the result is that of updating the whole map for each ion, to the last bit; blocks where the next ion
// cannot stand do it later, several ions at a time.
//
// Points are counted in steps of the grid, whose differences are exact: an ion is at distance 0 from its own point and
// from no other. The map is padded to whole blocks.
#include "real.clh"
#include "ions.clh"

#ifndef GROUP
#error "GROUP: work-items of a group, a power of two"
#endif
#ifndef VECTORS
#error "VECTORS: vectors of points that a work-item holds at a time; a block has a multiple of GROUP * VECTORS"
#endif
#ifndef BLOCK_X
#error "BLOCK_X: points of a block along x, a multiple of WIDTH"
#endif
#ifndef BLOCK_Y
#error "BLOCK_Y: points of a block along y"
#endif
#ifndef BLOCK_Z
#error "BLOCK_Z: points of a block along z"
#endif

// A work-item holds NX vectors of each of NY rows of points at a time; the items of a group share rows.
#define VECTORS_OF_ROW (BLOCK_X / WIDTH)
#define ITEMS_OF_ROW (GROUP < VECTORS_OF_ROW ? GROUP : VECTORS_OF_ROW)
#define NX (VECTORS_OF_ROW / ITEMS_OF_ROW)
#define NY (VECTORS / NX)
#define ROW_STEP (GROUP / ITEMS_OF_ROW)
#define N_ROWS (BLOCK_Y * BLOCK_Z)
#define SAME_Y (ROW_STEP % BLOCK_Y == 0)
#define SAME_Z (BLOCK_Y % (NY * ROW_STEP) == 0)
#if VECTORS < NX || N_ROWS % (NY * ROW_STEP)
#error "a work-item holds at least one row, and a group's rows divide a block"
#endif
#define NOWHERE (BLOCK_X * N_ROWS)

constant real LANES[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

INLINE int4 corner_of(int block, int4 blocks) {
    const int row = block / blocks.x;
    return (int4)(block % blocks.x * BLOCK_X, row % blocks.y * BLOCK_Y, row / blocks.y * BLOCK_Z, 0);
}

// What a work-item holds of a block: where that stands in the map, coordinates in steps of the grid, potentials.
typedef struct {
    size_t place[NY];
    realv x[NX];
    real y[NY], z[NY];
    realv potential[NY][NX];
} Own;

// The a-th vector of a work-item begins this many points after the first one.
#define STRIDE(a) ((a) * ITEMS_OF_ROW * WIDTH)

INLINE int first_x(int item) { return item % ITEMS_OF_ROW * WIDTH; }

INLINE int row_of(int start, int b, int item) { return start + b * ROW_STEP + item / ITEMS_OF_ROW; }

INLINE void load_rows(Own *own, int start, int item, int4 corner, int4 blocks, global const real *map) {
    #pragma unroll
    for (int a = 0; a < NX; ++a) own->x[a] = (real)(corner.x + first_x(item) + STRIDE(a)) + LOAD(0, LANES);
    #pragma unroll
    for (int b = 0; b < NY; ++b) {
        const int row = row_of(start, b, item), y = corner.y + row % BLOCK_Y, z = corner.z + row / BLOCK_Y;
        // Written so that compilers see which rows share a coordinate.
        own->y[b] = (SAME_Y & (b > 0)) ? own->y[0] : y;
        own->z[b] = (SAME_Z & (b > 0)) ? own->z[0] : z;
        own->place[b] = ((size_t)z * (blocks.y * BLOCK_Y) + y) * (blocks.x * BLOCK_X) + corner.x + first_x(item);
        #pragma unroll
        for (int a = 0; a < NX; ++a) own->potential[b][a] = LOAD(own->place[b] + STRIDE(a), map);
    }
}

INLINE void store_rows(const Own *own, global real *map) {
    #pragma unroll
    for (int b = 0; b < NY; ++b) {
        #pragma unroll
        for (int a = 0; a < NX; ++a) STORE(own->potential[b][a], own->place[b] + STRIDE(a), map);
    }
}

INLINE void squares_along_x(const Own *own, real4 point, real4 spacing, realv *dx2) {
    #pragma unroll
    for (int a = 0; a < NX; ++a) {
        const realv dx = (own->x[a] - point.x) * spacing.x;
        dx2[a] = dx * dx;
    }
}

INLINE real squares_of_row(const Own *own, int b, real4 point, real4 spacing) {
    const real dy = (own->y[b] - point.y) * spacing.y, dz = (own->z[b] - point.z) * spacing.z;
    return dy * dy + dz * dz;
}

INLINE void exclude(Own *own, real4 point, real4 spacing, real reach2) {
    realv dx2[NX];
    squares_along_x(own, point, spacing, dx2);
    #pragma unroll
    for (int b = 0; b < NY; ++b) {
        const real rest = squares_of_row(own, b, point, spacing);
        #pragma unroll
        for (int a = 0; a < NX; ++a)
            own->potential[b][a] = CHOOSE(own->potential[b][a], NAN, dx2[a] + rest <= (realv)reach2);
    }
}

// What this adds to the ion's own point is not finite.
INLINE void add_ion(Own *own, real4 ion, real charge, real4 spacing) {
    const real q = ROOT_UNIT * charge;
    realv dx2[NX];
    squares_along_x(own, ion, spacing, dx2);
    #pragma unroll
    for (int b = 0; b < NY; ++b) {
        const real rest = squares_of_row(own, b, ion, spacing);
        #pragma unroll
        for (int a = 0; a < NX; ++a) own->potential[b][a] += q * bare_root(dx2[a] + rest);
    }
}

// Excludes what stands near an atom or outside the grid. A work-group does a block.
kernel void exclude_solute(
    const int4 blocks,                     // blocks along x, y, z
    const int4 shape,                      // points along x, y, z, without padding
    const real4 spacing,                   // [A]
    const real reach2,                     // squared distance between atoms and ions [A^2]
    const int n_tiles,
    const int tile_size,
    global const real4 *restrict atoms,    // (n_tiles, tile_size) x, y, z [steps]
    global const int *restrict counts,     // (n_tiles) atoms in the tile
    global const real4 *restrict centres,  // (n_tiles) middle of the box around a tile [A]
    global const real4 *restrict extents,  // (n_tiles) its half edges [A]
    global real *restrict map,             // (points, padded) potential [kcal/mol/e]
    global int *restrict n_allowed)        // (n_blocks) points left; zeroed before
{
    const int block = get_group_id(0), item = get_local_id(0);
    const int4 corner = corner_of(block, blocks);
    const real4 half_block = (real)0.5 * (real4)(BLOCK_X - 1, BLOCK_Y - 1, BLOCK_Z - 1, 0) * spacing;
    const real4 middle = (real4)(corner.x, corner.y, corner.z, 0) * spacing + half_block;
    realv allowed = 0;
    Own own;
    for (int start = 0; start < N_ROWS; start += NY * ROW_STEP) {
        load_rows(&own, start, item, corner, blocks, map);
        for (int tile = 0; tile < n_tiles; ++tile) {
            real4 gap = fmax(fabs(centres[tile] - middle) - extents[tile] - half_block, (real)0);
            gap.w = 0;
            if (dot(gap, gap) > reach2) continue;
            for (int k = 0; k < counts[tile]; ++k) exclude(&own, atoms[tile * tile_size + k], spacing, reach2);
        }
        #pragma unroll
        for (int b = 0; b < NY; ++b) {
            const int outside = own.y[b] >= shape.y || own.z[b] >= shape.z;
            #pragma unroll
            for (int a = 0; a < NX; ++a) {
                if (outside) own.potential[b][a] = NAN;
                own.potential[b][a] = CHOOSE(own.potential[b][a], NAN, own.x[a] >= (realv)shape.x);
                allowed += CHOOSE((real)0, (real)1, own.potential[b][a] == own.potential[b][a]);
            }
        }
        store_rows(&own, map);
    }
    real lanes[WIDTH];
    STORE(allowed, 0, lanes);
    int sum = 0;
    for (int lane = 0; lane < WIDTH; ++lane) sum += (int)lanes[lane];
    atomic_add(&n_allowed[block], sum);
}

// Squared distance of a point from the nearest one of a block.
INLINE real nearest2_of_block(int4 corner, real4 point, real4 spacing) {
    const real4 low = ((real4)(corner.x, corner.y, corner.z, 0) - point) * spacing;
    const real4 high = low + (real4)(BLOCK_X - 1, BLOCK_Y - 1, BLOCK_Z - 1, 0) * spacing;
    const real4 gap = fmax(fmax(low, -high), (real)0);
    return dot(gap.xyz, gap.xyz);
}

// Moves what is known of a block on by the ion just placed, for either sign of charge, and tells whether the block may
// hold the next ion. The potential of an ion far away is, in the block, that in its middle, a slope, and a rest: of its
// second derivatives none exceeds 2 / r^3, and none is below -1 / r^3. Slopes of several ions cancel in part.
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
    const int far = nearest2 > extent2;
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

// Energies of unit charges of either sign at the lowest points that each lane has seen, and these points' numbers.
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

// The lowest energy of all lanes and its point's number, the smallest among equals.
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

// Brings a work-item's share of a block up to date with the ions from `first` on, and looks for its lowest points.
INLINE void add_ions(
    Lowest *lowest, int item, int4 corner, int4 blocks, real4 spacing, real reach2, int first, int last,
    global const real4 *places, global const real *charges, global real *map)
{
    Own own;
    for (int s = 0; s < 2; ++s) {
        lowest->energy[s] = INFINITY;
        lowest->number[s] = NOWHERE;
    }
    for (int start = 0; start < N_ROWS; start += NY * ROW_STEP) {
        load_rows(&own, start, item, corner, blocks, map);
        for (int j = first; j < last; ++j) {
            const real4 ion = places[j];
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

// A work-group owns every n_groups-th block. Each work-item moves one of them on; then the group together brings those
// that may hold the next ion up to date.
kernel void refresh(
    const int4 blocks,                     // blocks along x, y, z
    const int n_blocks,
    const real4 spacing,                   // [A]
    const real reach2,                     // squared distance between ions [A^2]
    global const int *restrict state,      // ions placed; 1 where no point was left for the next
    global const real *restrict threshold, // no less than the lowest energy of a unit charge of the next ion's sign
    global const real4 *restrict places,   // (n_ions) x, y, z [steps]
    global const real *restrict charges,   // (n_ions) [kcal A/mol/e]
    global real *restrict map,             // (points, padded) potential [kcal/mol/e]; NaN where no ion may stand
    global int *restrict seen,             // (n_blocks) ions that the points of a block have
    global real *restrict bounds,          // (2, n_blocks) by sign of charge [kcal/mol]
    global real4 *restrict slopes,         // (n_blocks) of what the bounds leave out, in the middle [kcal/mol/A]
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
            own, n_blocks, corner_of(own, blocks), spacing, reach2, places[placed - 1], charges[placed - 1],
            charges[placed] < 0, *threshold, bounds, slopes, best);
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);

    for (int k = 0; k < GROUP; ++k) {
        if (!stale[k]) continue;
        const int block = k * n_groups + group;
        const int4 corner = corner_of(block, blocks);
        Lowest lowest;
        add_ions(&lowest, item, corner, blocks, spacing, reach2, seen[block], placed, places, charges, map);
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

// Adds all ions to a map of potentials, in their order. A work-group does a block.
kernel void add_all(
    const int4 blocks,                     // blocks along x, y, z
    const real4 spacing,                   // [A]
    const int n_ions,
    global const real4 *restrict places,   // (n_ions) x, y, z [steps]
    global const real *restrict charges,   // (n_ions) [kcal A/mol/e]
    global real *restrict map)             // (points, padded) potential [kcal/mol/e]; not finite where an ion stands
{
    const int item = get_local_id(0);
    const int4 corner = corner_of(get_group_id(0), blocks);
    Own own;
    for (int start = 0; start < N_ROWS; start += NY * ROW_STEP) {
        load_rows(&own, start, item, corner, blocks, map);
        for (int j = 0; j < n_ions; ++j) add_ion(&own, places[j], charges[j], spacing);
        store_rows(&own, map);
    }
}
