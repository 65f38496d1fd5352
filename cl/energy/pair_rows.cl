// Pair energies on GPUs; all pairs of an atom are summed by the same work-items; docs/variants-energy.md. Third
// dimension: conformations.
#include "common/real.clh"
#include "engine/arguments.clh"
#include "common/tiles.clh"
#include "energy/rows.clh"
#include "energy/pair.clh"
#include "energy/sums.clh"

// 32-bit words for the atoms of a tile; TILE is less than 32 or a multiple of it.
#define WORDS ((TILE + 31) / 32)

INLINE void add_tile(
    Sums *sums, const Atom *own, local const real4 *points, local const real4 *traits, int count, const PairModel *model,
    const Kind kind) {
    for (int j = 0; j < count; ++j) {
        const Pair pair = evaluate_pair(own, points[j], traits[j], 0, 0, model, kind);
        add_pair(sums, &pair, kind);
    }
}

// masks: for each atom of this tile, WORDS 32-bit words of exclusions, followed by as many that mark the atom itself;
// stored word by word
INLINE void add_masked_tile(
    Sums *sums, const Atom *own, local const real4 *points, local const real4 *traits, int count, const PairModel *model,
    global const SAME_BITS *masks) {
    const Kind kind = {true, false};
    for (int word = 0; word < WORDS; ++word) {
        const maskv excluded = LOAD(word * TILE, masks), itself = LOAD((WORDS + word) * TILE, masks);
        const int first = 32 * word, last = min(count, first + 32);
        for (int j = first; j < last; ++j) {
            const int bit = j - first;
            const Pair pair = evaluate_pair(
                own, points[j], traits[j], ((excluded >> bit) & 1) != 0, ((itself >> bit) & 1) != 0, model, kind);
            add_pair(sums, &pair, kind);
        }
    }
}

kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void pair_rows(
    const int n_tiles,
    const PairModel model,
    global const real4 *restrict points,        // (n_conformations, n_slots) x, y, z from the tile's origin [A], charge
    global const real4 *restrict traits,        // (n_conformations, n_slots) Born radius [A], its inverse, well
    global const real *restrict x,              // (n_conformations, n_slots) the same as columns, for whole vectors
    global const real *restrict y,
    global const real *restrict z,
    global const real *restrict born,
    global const real *restrict charges,        // (n_slots)
    global const real *restrict sigmas,         // (n_slots)
    global const real *restrict epsilons,       // (n_slots)
    global const real4 *restrict origins,       // (n_conformations, n_tiles) [A]
    global const real4 *restrict extents,       // (n_conformations, n_tiles) half edges of the box [A]
    global const real *restrict largest_born,   // (n_conformations, n_tiles) [A]
    global const int *restrict counts,          // (n_tiles) atoms in the tile
    global const int *restrict special_starts,  // (n_tiles + 1) index of each tile's first masked partner
    global const int *restrict specials,        // partners, ascending
    global const SAME_BITS *restrict masks,     // (n_specials, 2, WORDS, TILE)
    global const real4 *restrict singles,       // (n_conformations, n_slots) cl/energy/terms.clh
    global real *restrict weights,              // (n_conformations, n_slots) dE/dI for the chain rule, 0 at unused slots [kcal/mol A]
    global real *restrict sums)                 // (n_conformations, PAIR_SUMS, n_slots)
{
    SERVES_ROWS(pair_rows)
    local real4 met[2 * PARTS * TILE];  // later the sums of the parts
    local real4 *met_points = met, *met_traits = met + PARTS * TILE;
    local real columns[PAIR_SUMS * TILE];
    const int item = get_local_id(0), part_number = item / ITEMS, own_tile = get_group_id(0);
    const int conformation = get_global_id(2);
    const int n_slots = n_tiles * TILE, within = item % ITEMS * WIDTH, first = own_tile * TILE + within;
    local real4 *tile_points = met_points + part_number * TILE, *tile_traits = met_traits + part_number * TILE;
    const size_t at = (size_t)conformation * n_slots, box = (size_t)conformation * n_tiles;
    const real4 origin = origins[box + own_tile], extent = extents[box + own_tile];
    const real own_born = largest_born[box + own_tile];

    int special = special_starts[own_tile];
    const int last_special = special_starts[own_tile + 1];
    const real4 nowhere = 0;
    const Atom placed = load_atom(first, nowhere, x + at, y + at, z + at, charges, born + at, sigmas, epsilons);
    Sums total = {0, 0, 0, 0, 0, 0, 0};
    for (int start = 0; start < n_tiles; start += PARTS) {
        const int tile = start + part_number;
        if (tile < n_tiles) {
            for (int k = within; k < within + WIDTH; ++k) {
                tile_points[k] = points[at + tile * TILE + k];
                tile_traits[k] = traits[at + tile * TILE + k];
            }
        }
        PART_BARRIER();
        if (tile < n_tiles) {
            const real4 shift = origin - origins[box + tile];
            const real gap2 = box_gap2(shift, extent, extents[box + tile]);
            while (special < last_special && specials[special] < tile) ++special;
            const bool masked = special < last_special && specials[special] == tile;
            Atom own = placed;
            own.x += shift.x;
            own.y += shift.y;
            own.z += shift.z;
            Sums part = {0, 0, 0, 0, 0, 0, 0};
            if (masked) {
                add_masked_tile(&part, &own, tile_points, tile_traits, counts[tile], &model,
                                masks + (size_t)special * 2 * WORDS * TILE + first % TILE);
            }
#if CUTOFF
            else if (gap2 > model.cutoff2) { }
#endif
            else if (gap2 > BARE_RADII2 * own_born * largest_born[box + tile]) {
                const Kind bare = {false, true};
                add_tile(&part, &own, tile_points, tile_traits, counts[tile], &model, bare);
            } else {
                const Kind common = {false, false};
                add_tile(&part, &own, tile_points, tile_traits, counts[tile], &model, common);
            }
            // Partial sums per tile keep float32 accurate.
            total.lennard_jones += part.lennard_jones;
            total.coulomb += part.coulomb;
            total.gb += part.gb;
            total.x += part.x;
            total.y += part.y;
            total.z += part.z;
            total.radius += part.radius;
        }
        PART_BARRIER();
    }
    const realv totals[PAIR_SUMS] = {
        total.lennard_jones, total.coulomb, total.gb, total.x, total.y, total.z, total.radius};
    global real *out = sums + (size_t)conformation * PAIR_SUMS * n_slots + own_tile * TILE;
    add_parts(totals, PAIR_SUMS, (local real *)met, columns);
    for (int k = item; k < PAIR_SUMS * TILE; k += GROUP) out[k / TILE * n_slots + k % TILE] = columns[k];
#if GRADIENT
    for (int k = item; k < TILE; k += GROUP) {
        const size_t i = at + own_tile * TILE + k;
        weights[i] = k < counts[own_tile] ? weight_of(columns[RADIUS_SUM * TILE + k], born[i], singles[i]) : (real)0;
    }
#endif
}
