// Pair energies over blocks of two tiles, each pair once for both atoms, for CPUs; docs/variants-energy.md.
//
// The atoms of the one tile are vectors of WIDTH. The others come one by one, each with vectors of sums of its own. A
// work-item walks every n_parts-th tile of a conformation (third dimension). It pairs it with half of the others in a
// ring, so that each two meet once. It adds to sums of its own. No atomics, no barriers, equal bits in every run.
#include "common/real.clh"
#include "engine/arguments.clh"
#include "common/tiles.clh"
#include "energy/pair.clh"

#ifndef TILE
#error "TILE: atoms in a tile; a multiple of WIDTH, at most 32"
#endif
#if TILE > 32
#error "TILE: a word of masks has a bit for each of at most 32 atoms"
#endif
#ifndef PER_ATOM
#error "PER_ATOM: 1 where each atom gets its half of an energy, 0 where the sum over atoms is wanted alone"
#endif

INLINE void add_block(
    Sums *sums, Sums *other_sums, const Atom *own, global const real4 *points, global const real4 *traits, int count,
    const PairModel *model, maskv excluded, maskv itself, const Kind kind, const bool both) {
    for (int j = 0; j < count; ++j) {
        const maskv is_excluded = kind.masked ? ((excluded >> j) & 1) != 0 : (maskv)0;
        const maskv is_itself = kind.masked ? ((itself >> j) & 1) != 0 : (maskv)0;
        const Pair pair = evaluate_pair(own, points[j], traits[j], is_excluded, is_itself, model, kind);
        add_pair(sums, &pair, kind);
        if (!both) continue;
        Sums *other = other_sums + j;
#if PER_ATOM
        other->lennard_jones += pair.lennard_jones;
        other->coulomb += pair.coulomb;
        other->gb += pair.gb;
#endif
#if GRADIENT
        other->x -= pair.slope * pair.dx;
        other->y -= pair.slope * pair.dy;
        other->z -= pair.slope * pair.dz;
        if (!kind.bare) other->radius += pair.tied * pair.arm;
#endif
    }
}

INLINE void add_sums(Sums *total, const Sums *sums) {
    total->x += sums->x;
    total->y += sums->y;
    total->z += sums->z;
    total->radius += sums->radius;
#if PER_ATOM
    total->lennard_jones += sums->lennard_jones;
    total->coulomb += sums->coulomb;
    total->gb += sums->gb;
#endif
}

INLINE void add_to(global real *out, int column, int n_slots, int i, realv value) {
    global real *sums = out + (size_t)column * n_slots;
    STORE(LOAD(i, sums) + value, i, sums);
}

kernel void pair_blocks(
    const int n_tiles,
    const int n_parts,
    const int first_frozen,                     // from this tile on pairs of tiles do not count
    PAIR_ARGUMENTS,
    global const int *restrict special_starts,  // (n_tiles + 1) first of each tile's masked partners
    global const int *restrict specials,        // partners in the order of the ring
    global const SAME_BITS *restrict masks,     // (n_specials, 2, TILE) bits of the tile, for each atom of the partner
    global real *restrict sums)                 // (n_conformations, n_parts, PAIR_SUMS, n_slots)
{
    SERVES_ROWS(pair_blocks)
    const int part = get_global_id(0), conformation = get_global_id(2), n_slots = n_tiles * TILE;
    if (part >= n_parts) return;
    const size_t at = (size_t)conformation * n_slots, box = (size_t)conformation * n_tiles;
    global real *out = sums + ((size_t)conformation * n_parts + part) * PAIR_SUMS * n_slots;
    for (int i = 0; i < PAIR_SUMS * n_slots; i += WIDTH) STORE((realv)0, i, out);

    for (int other_tile = part; other_tile < n_tiles; other_tile += n_parts) {
        Sums other_sums[TILE], other_totals[TILE];
        const Sums none = {0, 0, 0, 0, 0, 0, 0};
        for (int j = 0; j < TILE; ++j) other_sums[j] = other_totals[j] = none;
        const int count = counts[other_tile];
        const real4 origin = origins[box + other_tile], extent = extents[box + other_tile];
        global const real4 *other_points = points + at + other_tile * TILE;
        global const real4 *other_traits = traits + at + other_tile * TILE;
        const Kind common = {false, false}, with_masks = {true, false}, without_gauss = {false, true};
        int special = special_starts[other_tile];
        const int last_special = special_starts[other_tile + 1];
        // Half way around the ring; the tile opposite in an even ring is met from one side only.
        const int last_step = (n_tiles - (2 * other_tile < n_tiles)) / 2;
        for (int step = 0; step <= last_step; ++step) {
            const int tile = (other_tile + step) % n_tiles;
            const real4 shift = origins[box + tile] - origin;
            const real gap2 = box_gap2(shift, extents[box + tile], extent);
            const bool masked = special < last_special && specials[special] == tile;
            bool within = min(tile, other_tile) < first_frozen;
#if CUTOFF
            within = within && (gap2 <= model.cutoff2 || masked);
#endif
            const bool bare = gap2 > BARE_RADII2 * largest_born[box + other_tile] * largest_born[box + tile];
            // A tile with itself has each pair twice, once for either atom; so energies count double everywhere.
            const real share = PER_ATOM || step == 0 ? 1 : 2;
            for (int v = 0; within && v < TILE; v += WIDTH) {
                const int i = tile * TILE + v;
                const Atom own = load_atom(i, shift, x + at, y + at, z + at, charges, born + at, sigmas, epsilons);
                Sums own_sums = none;
#define ADD_BLOCK(kind, both) \
    add_block(&own_sums, other_sums, &own, other_points, other_traits, count, &model, excluded, itself, kind, both)
                maskv excluded = 0, itself = 0;
                if (masked) {
                    global const SAME_BITS *words = masks + (size_t)special * 2 * TILE + v;
                    excluded = LOAD(0, words);
                    itself = LOAD(TILE, words);
                    if (step == 0) ADD_BLOCK(with_masks, false);
                    else ADD_BLOCK(with_masks, true);
                } else if (bare) ADD_BLOCK(without_gauss, true);
                else ADD_BLOCK(common, true);
#undef ADD_BLOCK
                add_to(out, LENNARD_JONES_SUM, n_slots, i, share * own_sums.lennard_jones);
                add_to(out, COULOMB_SUM, n_slots, i, share * own_sums.coulomb);
                add_to(out, GB_SUM, n_slots, i, share * own_sums.gb);
                add_to(out, GRADIENT_SUM, n_slots, i, own_sums.x);
                add_to(out, GRADIENT_SUM + 1, n_slots, i, own_sums.y);
                add_to(out, GRADIENT_SUM + 2, n_slots, i, own_sums.z);
                add_to(out, RADIUS_SUM, n_slots, i, own_sums.radius);
            }
            special += masked;
            if (step % RUN_OF_TILES == 0 || step == last_step) {
                for (int j = 0; j < TILE; ++j) {
                    add_sums(other_totals + j, other_sums + j);
                    other_sums[j] = none;
                }
            }
        }
        for (int j = 0; j < count; ++j) {
            const int i = other_tile * TILE + j;
            out[LENNARD_JONES_SUM * n_slots + i] += lane_sum(other_totals[j].lennard_jones);
            out[COULOMB_SUM * n_slots + i] += lane_sum(other_totals[j].coulomb);
            out[GB_SUM * n_slots + i] += lane_sum(other_totals[j].gb);
            out[GRADIENT_SUM * n_slots + i] += lane_sum(other_totals[j].x);
            out[(GRADIENT_SUM + 1) * n_slots + i] += lane_sum(other_totals[j].y);
            out[(GRADIENT_SUM + 2) * n_slots + i] += lane_sum(other_totals[j].z);
            out[RADIUS_SUM * n_slots + i] += lane_sum(other_totals[j].radius);
        }
    }
}
