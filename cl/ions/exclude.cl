// Sets points that are closed to ions to NaN: those near an atom or outside the grid. One work-group per block.
#include "common/real.clh"
#include "ions/block.clh"

INLINE int any_left(const Own *own) {
    maskv left = 0;
    #pragma unroll
    for (int b = 0; b < NY; ++b) {
        #pragma unroll
        for (int a = 0; a < NX; ++a) left |= own->potential[b][a] == own->potential[b][a];
    }
    return ANY(left);
}

kernel void exclude_solute(
    const int4 blocks,                     // number of blocks along x, y, z
    const int4 shape,                      // points along x, y, z, without padding
    const real4 spacing,                   // [A]
    const real reach2,                     // squared distance between atoms and ions [A^2]
    const int n_tiles,
    const int tile_size,
    global const real4 *restrict atoms,    // (n_tiles, tile_size) x, y, z [steps]
    global const int *restrict counts,     // (n_tiles) atoms in the tile
    global const real4 *restrict centres,  // (n_tiles) centre of the box around a tile [A]
    global const real4 *restrict extents,  // (n_tiles) its half edges [A]
    global real *restrict map,             // (points, padded) potential [kcal/mol/e]
    global int *restrict n_allowed)        // (n_blocks) number of allowed points; initially zero
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
            if (!any_left(&own)) break;
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
