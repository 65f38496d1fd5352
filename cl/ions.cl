// Greedy placement of ions on a grid of potentials; why so: docs/theory/ions.md, section 3.
//
// The map is cut into blocks of points. For either sign of charge a block keeps the best of its points known so far
// and a bound below which none of its points can be. `refresh` moves both on by the ion just placed; blocks that may
// hold the next ion, their bound being no higher than the best point known anywhere, are brought up to date in one
// pass: add every ion they have not seen, exclude its neighbourhood, find the lowest energies. `choose` takes the lowest
// of all blocks. Every point gets every ion in the order of placement, so the result is that of updating the whole map
// at once for each ion, to the last bit; blocks where nothing can happen do it later, several ions at a time.
//
// Points are counted in whole steps of the grid, whose differences are exact: two points never seem to coincide, or
// one point to be apart from itself. The map is padded to whole blocks with points that are not allowed.
#include "real.clh"

#ifndef GROUP
#error "GROUP: work-items of a group, a power of two"
#endif
#ifndef VECTORS
#error "VECTORS: vectors of points that a work-item holds at a time"
#endif
#ifndef BLOCK_X
#error "BLOCK_X: points of a block along x, a multiple of WIDTH"
#endif
#ifndef BLOCK_Y
#error "BLOCK_Y: points of a block along y"
#endif
#ifndef BLOCK_Z
#error "BLOCK_Z: points of a block along z; GROUP * VECTORS vectors divide a block"
#endif

#define VECTORS_OF_BLOCK (BLOCK_X * BLOCK_Y * BLOCK_Z / WIDTH)
#define VECTORS_OF_ROW (BLOCK_X / WIDTH)
#define NOWHERE (BLOCK_X * BLOCK_Y * BLOCK_Z)

// What rounding may do to an energy, relative to itself and the term added to it.
#if REAL_BITS == 32
#define SLACK ((real)16 * FLT_EPSILON)
#else
#define SLACK ((real)16 * DBL_EPSILON)
#endif

#if WIDTH == 1
#define LOAD_FLAGS(index, pointer) ((maskv)(pointer)[index])
#define STORE_FLAGS(flags, index, pointer) ((pointer)[index] = (uchar)(flags))
#else
#define LOAD_FLAGS(index, pointer) (CAT(convert_, CAT(SAME_BITS, WIDTH))(CAT(vload, WIDTH)(0, (pointer) + (index))) != 0)
#define STORE_FLAGS(flags, index, pointer) CAT(vstore, WIDTH)(CAT(convert_uchar, WIDTH)((flags) & 1), 0, (pointer) + (index))
#endif

constant real LANES[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

// A vector of points: place of the first one in the map, its coordinates in steps of the grid, its number in the block.
typedef struct { size_t place; int x, y, z, number; } Place;

INLINE int4 corner_of(int block, int4 blocks) {
    return (int4)(block % blocks.x * BLOCK_X, block / blocks.x % blocks.y * BLOCK_Y, block / blocks.x / blocks.y * BLOCK_Z, 0);
}

INLINE Place place_of(int vector_, int4 corner, int4 blocks) {
    Place place;
    place.x = corner.x + vector_ % VECTORS_OF_ROW * WIDTH;
    place.y = corner.y + vector_ / VECTORS_OF_ROW % BLOCK_Y;
    place.z = corner.z + vector_ / VECTORS_OF_ROW / BLOCK_Y;
    place.place = ((size_t)place.z * (blocks.y * BLOCK_Y) + place.y) * (blocks.x * BLOCK_X) + place.x;
    place.number = vector_ * WIDTH;
    return place;
}

INLINE realv distance2(Place at, real4 point, real4 spacing) {
    const realv dx = ((real)at.x - point.x + LOAD(0, LANES)) * spacing.x;
    const real dy = ((real)at.y - point.y) * spacing.y, dz = ((real)at.z - point.z) * spacing.z;
    return dx * dx + (dy * dy + dz * dz);
}

// Squared distances of a point from the nearest and the farthest point of a block.
INLINE real2 distances2_of_block(int4 corner, real4 point, real4 spacing) {
    const real4 low = ((real4)(corner.x, corner.y, corner.z, 0) - point) * spacing;
    const real4 high = low + (real4)(BLOCK_X - 1, BLOCK_Y - 1, BLOCK_Z - 1, 0) * spacing;
    real4 gap = fmax(fmax(low, -high), (real)0), reach = fmax(-low, high);
    gap.w = reach.w = 0;
    return (real2)(dot(gap, gap), dot(reach, reach));
}

// Marks the points of the map that stand farther than a distance from every atom. A work-group does a block.
kernel void allow(
    const int4 blocks,                     // blocks along x, y, z
    const int4 shape,                      // points along x, y, z, without padding
    const real4 spacing,                   // [A]
    const real reach2,                     // squared distance within which nothing is allowed [A^2]
    const int n_tiles,
    const int tile_size,
    global const real4 *restrict atoms,    // (n_tiles, tile_size) x, y, z from the grid's origin [A]
    global const int *restrict counts,     // (n_tiles) atoms in the tile
    global const real4 *restrict centres,  // (n_tiles) middle of the box around a tile [A]
    global const real4 *restrict extents,  // (n_tiles) its half edges [A]
    global uchar *restrict allowed)        // (points, padded) 1 where an ion may stand
{
    const int block = get_group_id(0), item = get_local_id(0);
    const int4 corner = corner_of(block, blocks);
    const real4 half_block = (real)0.5 * (real4)(BLOCK_X - 1, BLOCK_Y - 1, BLOCK_Z - 1, 0) * spacing;
    const real4 middle = (real4)(corner.x, corner.y, corner.z, 0) * spacing + half_block;
    for (int start = 0; start < VECTORS_OF_BLOCK; start += GROUP * VECTORS) {
        realv nearest2[VECTORS];
        #pragma unroll
        for (int v = 0; v < VECTORS; ++v) nearest2[v] = INFINITY;
        for (int tile = 0; tile < n_tiles; ++tile) {
            real4 gap = fmax(fabs(centres[tile] - middle) - extents[tile] - half_block, (real)0);
            gap.w = 0;
            if (dot(gap, gap) > reach2) continue;
            for (int a = tile * tile_size; a < tile * tile_size + counts[tile]; ++a) {
                const real4 atom = atoms[a];
                #pragma unroll
                for (int v = 0; v < VECTORS; ++v) {
                    const Place at = place_of(start + v * GROUP + item, corner, blocks);
                    const realv dx = ((real)at.x + LOAD(0, LANES)) * spacing.x - atom.x;
                    const real dy = at.y * spacing.y - atom.y, dz = at.z * spacing.z - atom.z;
                    nearest2[v] = fmin(nearest2[v], dx * dx + (dy * dy + dz * dz));
                }
            }
        }
        #pragma unroll
        for (int v = 0; v < VECTORS; ++v) {
            const Place at = place_of(start + v * GROUP + item, corner, blocks);
            maskv far = nearest2[v] > (realv)reach2;
            far &= (real)at.x + LOAD(0, LANES) < (realv)shape.x;
            if (at.y >= shape.y || at.z >= shape.z) far = 0;
            STORE_FLAGS(far, at.place, allowed);
        }
    }
}

// Moves bound and best point of a block on by the ion just placed, for either sign of charge, and tells whether the
// block may hold the next ion.
INLINE int move_on(
    int block, int n_blocks, int4 corner, real4 spacing, real reach2, real4 ion, real charge, int side, real threshold,
    global real *bounds, global real4 *best)
{
    const real2 range2 = distances2_of_block(corner, ion, spacing);
    for (int s = 0; s < 2; ++s) {
        const int k = s * n_blocks + block;
        const real bound = bounds[k];
        if (bound == INFINITY) continue;
        const real q = s ? -charge : charge;
        const real least = q * rsqrt(q > 0 ? range2.y : fmax(range2.x, reach2));
        bounds[k] = range2.y <= reach2 ? INFINITY : bound + least - SLACK * (fabs(bound) + fabs(least));
        const real4 point = best[k];
        const real4 d = (point - ion) * spacing;
        const real r2 = d.x * d.x + d.y * d.y + d.z * d.z;
        best[k].w = r2 <= reach2 ? INFINITY : point.w + q * rsqrt(r2);
    }
    const real bound = bounds[side * n_blocks + block];
    return bound < INFINITY && bound <= threshold;
}

// Energies of unit charges of either sign at the lowest points that each lane has seen, and these points' numbers.
typedef struct { realv energy[2]; maskv number[2]; } Lowest;

INLINE void look_at(Lowest *lowest, realv potential, maskv allowed, int number) {
    #pragma unroll
    for (int s = 0; s < 2; ++s) {
        const realv energy = CHOOSE(INFINITY, s ? -potential : potential, allowed);
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

// Brings a work-item's share of a block up to date.
INLINE void add_ions(
    Lowest *lowest, int item, int4 corner, int4 blocks, real4 spacing, real reach2, int first, int last,
    global const real4 *places, global const real *charges, global real *map, global uchar *allowed)
{
    for (int start = 0; start < VECTORS_OF_BLOCK; start += GROUP * VECTORS) {
        Place at[VECTORS];
        realv potential[VECTORS];
        maskv flags[VECTORS];
        #pragma unroll
        for (int v = 0; v < VECTORS; ++v) {
            at[v] = place_of(start + v * GROUP + item, corner, blocks);
            potential[v] = LOAD(at[v].place, map);
            flags[v] = LOAD_FLAGS(at[v].place, allowed);
        }
        for (int j = first; j < last; ++j) {
            const real4 ion = places[j];
            const real charge = charges[j];
            if (distances2_of_block(corner, ion, spacing).x > reach2) {
                #pragma unroll
                for (int v = 0; v < VECTORS; ++v) potential[v] += charge * inverse_sqrt(distance2(at[v], ion, spacing));
                continue;
            }
            #pragma unroll
            for (int v = 0; v < VECTORS; ++v) {
                const realv r2 = distance2(at[v], ion, spacing);
                const maskv elsewhere = r2 > (realv)0;
                // An ion adds nothing where it stands itself.
                potential[v] += CHOOSE((real)0, charge * inverse_sqrt(CHOOSE((real)1, r2, elsewhere)), elsewhere);
                flags[v] &= r2 > (realv)reach2;
            }
        }
        #pragma unroll
        for (int v = 0; v < VECTORS; ++v) {
            if (last > first) {
                STORE(potential[v], at[v].place, map);
                STORE_FLAGS(flags[v], at[v].place, allowed);
            }
            look_at(lowest, potential[v], flags[v], at[v].number);
        }
    }
}

// A work-group owns every n_groups-th block. Each work-item moves one of them on; then the group brings those that may
// hold the next ion up to date together.
kernel void refresh(
    const int everything,                  // 1: bring all blocks up to date, look at none
    const int4 blocks,                     // blocks along x, y, z
    const int n_blocks,
    const real4 spacing,                   // [A]
    const real reach2,                     // squared distance between ions [A^2]
    global const int *restrict state,      // ions placed; 1 where no point was left for the next
    global const real *restrict threshold, // no less than the lowest energy of a unit charge of the next ion's sign
    global const real4 *restrict places,   // (n_ions) x, y, z [steps]
    global const real *restrict charges,   // (n_ions) [kcal A/mol/e]
    global real *restrict map,             // (points, padded) potential [kcal/mol/e]
    global uchar *restrict allowed,        // (points, padded) 1 where an ion may stand
    global int *restrict seen,             // (n_blocks) ions that a block's points have
    global real *restrict bounds,          // (2, n_blocks) by sign of charge [kcal/mol]
    global real4 *restrict best)           // (2, n_blocks) x, y, z [steps], energy of a unit charge [kcal/mol]
{
    local int stale[GROUP];
    local real energies[2 * GROUP];
    local int numbers[2 * GROUP];
    const int placed = state[0], full = state[1];
    const int item = get_local_id(0), group = get_group_id(0), n_groups = get_num_groups(0);
    if (full && !everything) return;

    const int own = item * n_groups + group;
    stale[item] = 0;
    if (own < n_blocks) {
        stale[item] = 1;
        if (placed && !everything) {
            const int4 corner = corner_of(own, blocks);
            stale[item] = move_on(
                own, n_blocks, corner, spacing, reach2, places[placed - 1], charges[placed - 1], charges[placed] < 0,
                *threshold, bounds, best);
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);

    for (int k = 0; k < GROUP; ++k) {
        if (!stale[k]) continue;
        const int block = k * n_groups + group;
        const int4 corner = corner_of(block, blocks);
        Lowest lowest;
        for (int s = 0; s < 2; ++s) {
            lowest.energy[s] = INFINITY;
            lowest.number[s] = NOWHERE;
        }
        add_ions(&lowest, item, corner, blocks, spacing, reach2, seen[block], placed, places, charges, map, allowed);
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
                const int n = numbers[s * GROUP];
                const int4 at = corner + (int4)(n % BLOCK_X, n / BLOCK_X % BLOCK_Y, n / BLOCK_X / BLOCK_Y, 0);
                bounds[s * n_blocks + block] = energies[s * GROUP];
                best[s * n_blocks + block] = (real4)(at.x, at.y, at.z, energies[s * GROUP]);
            }
            seen[block] = placed;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

// Whether point a comes before point b: by energy, among equals by its place in the map.
INLINE int before(real4 a, real4 b) {
    if (a.w != b.w) return a.w < b.w;
    if (a.z != b.z) return a.z < b.z;
    return a.y != b.y ? a.y < b.y : a.x < b.x;
}

// One work-group: takes the best point of all blocks for the next ion, then finds an energy that the one after it will
// not exceed, from the same points.
kernel void choose(
    const int n_blocks,
    const int n_ions,
    const real4 spacing,                   // [A]
    const real reach2,                     // squared distance between ions [A^2]
    global const real *restrict charges,   // (n_ions) [kcal A/mol/e]
    global const real4 *restrict best,     // (2, n_blocks) x, y, z [steps], energy of a unit charge [kcal/mol]
    global int *restrict state,            // ions placed; 1 where no point was left for the next
    global real *restrict threshold,       // for the next call of refresh [kcal/mol]
    global real4 *restrict places)         // (n_ions) x, y, z [steps], potential before the ion [kcal/mol/e]
{
    local real4 firsts[GROUP];
    local real lowest[GROUP];
    const int item = get_local_id(0);
    const int placed = state[0], full = state[1];
    if (full) return;

    const int side = charges[placed] < 0;
    real4 first = (real4)(0, 0, 0, INFINITY);
    for (int b = item; b < n_blocks; b += GROUP) {
        const real4 point = best[side * n_blocks + b];
        if (before(point, first)) first = point;
    }
    firsts[item] = first;
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    for (int half_size = GROUP / 2; half_size > 0; half_size /= 2) {
        if (item < half_size && before(firsts[item + half_size], firsts[item])) firsts[item] = firsts[item + half_size];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    const real4 ion = firsts[0];

    const int next = min(placed + 1, n_ions - 1), next_side = charges[next] < 0;
    const real q = next_side ? -charges[placed] : charges[placed];
    real least = INFINITY;
    for (int b = item; b < n_blocks; b += GROUP) {
        const real4 point = best[next_side * n_blocks + b];
        const real4 d = (point - ion) * spacing;
        const real r2 = d.x * d.x + d.y * d.y + d.z * d.z;
        const real term = q * rsqrt(r2);
        if (r2 > reach2) least = fmin(least, point.w + term + SLACK * (fabs(point.w) + fabs(term)));
    }
    lowest[item] = least;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int half_size = GROUP / 2; half_size > 0; half_size /= 2) {
        if (item < half_size) lowest[item] = fmin(lowest[item], lowest[item + half_size]);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (item) return;
    if (ion.w < INFINITY) {
        places[placed] = (real4)(ion.x, ion.y, ion.z, side ? -ion.w : ion.w);
        state[0] = placed + 1;
        *threshold = lowest[0];
    } else {
        state[1] = 1;
    }
}
