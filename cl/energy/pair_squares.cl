// Pair energies by tile pairs, each pair of atoms once for both of them, for GPUs; docs/variants-energy.md. Second
// dimension: chunks of steps around the ring; third: conformations.
#include "common/real.clh"
#include "common/tiles.clh"
#include "energy/squares.clh"
#include "energy/pair.clh"
#include "energy/collect.clh"

#if WIDTH != 1
#error "WIDTH: squares are for scalar work-items"
#endif

// The tile that is met; its atoms stand twice, one after the other, which spares going around its end.
typedef struct {
    local const real4 *points, *traits;
    local real4 *recoil;
    int count;
} Met;

// Of `n` of the own atoms, a constant. excluded, itself: bits of the tile's atoms, for a single own atom.
INLINE void add_square(
    Sums *sums, const Atom *own, const int n, const Met *met, int lane, int excluded, int itself, const PairModel *model,
    const Kind kind) {
    for (int turn = 0; turn < TURNS; ++turn) {
        const int j = lane + FIRST_TURN + turn;
        const real4 point = met->points[j], other = met->traits[j];
        real4 back = met->recoil[j];
        // An unused slot stands on an atom; it is left out like an atom itself.
        const int bit = j % TILE, unused = bit >= met->count;
        const int is_excluded = kind.masked ? (excluded >> bit & 1) | unused : 0;
        const int is_itself = kind.masked ? (itself >> bit & 1) | unused : 0;
        #pragma unroll
        for (int v = 0; v < n; ++v) {
            const Pair pair = evaluate_pair(own + v, point, other, is_excluded, is_itself, model, kind);
            add_energies(sums, &pair);
            add_slopes(sums + v, &pair, kind);
#if GRADIENT
            back.x -= pair.slope * pair.dx;
            back.y -= pair.slope * pair.dy;
            back.z -= pair.slope * pair.dz;
            if (!kind.bare) back.w += pair.tied * pair.arm;
#endif
        }
        met->recoil[j] = back;
        TURN_BARRIER();
    }
}

kernel __attribute__((reqd_work_group_size(TILE, SHARES, 1)))
void pair_squares(
    const int n_tiles,
    const PairModel model,
    global const real4 *restrict points,        // (n_conformations, n_slots) x, y, z from the tile's origin [A], charge
    global const real4 *restrict origins,       // (n_conformations, n_tiles) [A]
    global const real4 *restrict extents,       // (n_conformations, n_tiles) half edges of the box [A]
    global const real *restrict largest_born,   // (n_conformations, n_tiles) [A]
    global const int *restrict special_starts,  // (n_tiles + 1) first of each tile's masked partners
    global const int *restrict specials,        // partners in the order of the ring
    global const SAME_BITS *restrict masks,     // (n_specials, 2, TILE) bits of the partner, for each own atom
    COLLECT_ARGUMENTS(restrict))
{
    local real4 met_points[2 * TILE], met_traits[2 * TILE], all_recoil[SHARES * 2 * TILE];
    local real4 *met_recoil = all_recoil + get_local_id(1) * 2 * TILE;
    const int lane = get_local_id(0), row = get_group_id(0);
    const bool first_share = get_local_id(1) == 0;
    const int chunk = get_group_id(1), conformation = get_global_id(2);
    const int n_slots = n_tiles * TILE, n_rows = rows_of(n_tiles);
    const int n_own = min(ROW, n_tiles - row * ROW);
    const size_t at = (size_t)conformation * n_slots, box = (size_t)conformation * n_tiles;
    const int begin = ring.first_step + chunk * ring.steps_per_chunk;
    const int end = min(min(begin + ring.steps_per_chunk, ring.end_step), last_step_of(row, n_rows) + 1);

    // Energies of all own atoms stand in the first sums, in the end those of all work-items with the first atom.
    Sums total[ROW];
    Atom placed[ROW];
    int own_tiles[ROW], special[ROW];
    #pragma unroll
    for (int v = 0; v < ROW; ++v) {
        total[v] = (Sums){0, 0, 0, 0, 0, 0, 0};
        own_tiles[v] = row * ROW + min(v, n_own - 1);
        const size_t i = at + own_tiles[v] * TILE + lane;
        placed[v] = atom_of(points[i], traits[i]);
        special[v] = special_starts[own_tiles[v]];
        while (special[v] < special_starts[own_tiles[v] + 1]
               && (specials[special[v]] / ROW - row + n_rows) % n_rows < begin) ++special[v];
    }
    for (int step = begin; step < end; ++step) {
        const int first = (row + step) % n_rows * ROW, last = min(first + ROW, n_tiles);
        for (int tile = first; tile < last; ++tile) {
            const real4 origin = origins[box + tile], extent = extents[box + tile];
            const real met_born = largest_born[box + tile];
#if SHARES > 1
            barrier(CLK_LOCAL_MEM_FENCE);  // until no share needs the tile before
#endif
            if (first_share) {
                met_points[lane] = met_points[lane + TILE] = points[at + tile * TILE + lane];
                met_traits[lane] = met_traits[lane + TILE] = traits[at + tile * TILE + lane];
            }
            met_recoil[lane] = met_recoil[lane + TILE] = 0;
            const Met met = {met_points, met_traits, met_recoil, counts[tile]};
            Atom own[ROW];
            Sums part[ROW];
            real nearest = MAXFLOAT;
            bool all_bare = true, masked[ROW], any_masked = n_own < ROW;
            #pragma unroll
            for (int v = 0; v < ROW; ++v) {
                const real4 shift = origins[box + own_tiles[v]] - origin;
                own[v] = placed[v];
                own[v].x += shift.x;
                own[v].y += shift.y;
                own[v].z += shift.z;
                part[v] = (Sums){0, 0, 0, 0, 0, 0, 0};
                const real gap2 = box_gap2(shift, extents[box + own_tiles[v]], extent);
                nearest = fmin(nearest, gap2);
                all_bare = all_bare && gap2 > BARE_RADII2 * largest_born[box + own_tiles[v]] * met_born;
                masked[v] = special[v] < special_starts[own_tiles[v] + 1] && specials[special[v]] == tile;
                any_masked = any_masked || masked[v];
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            if (any_masked) {
                const Kind kind = {true, false};
                #pragma unroll
                for (int v = 0; v < ROW; ++v) {
                    if (v < n_own) {
                        // An unused slot of its own stands on an atom, too.
                        const int all_or_none = lane < counts[own_tiles[v]] ? 0 : ~0;
                        int excluded = all_or_none, itself = all_or_none;
                        if (masked[v]) {
                            global const SAME_BITS *words = masks + (size_t)special[v] * 2 * TILE + lane;
                            excluded |= (int)words[0];
                            itself |= (int)words[TILE];
                            ++special[v];
                        }
                        Sums single = {0, 0, 0, 0, 0, 0, 0};
                        add_square(&single, own + v, 1, &met, lane, excluded, itself, &model, kind);
                        part[0].lennard_jones += single.lennard_jones;
                        part[0].coulomb += single.coulomb;
                        part[0].gb += single.gb;
                        part[v].x = single.x;
                        part[v].y = single.y;
                        part[v].z = single.z;
                        part[v].radius = single.radius;
                    }
                }
            }
#if CUTOFF
            else if (nearest > model.cutoff2) { }
#endif
            else if (all_bare) {
                const Kind kind = {false, true};
                add_square(part, own, ROW, &met, lane, 0, 0, &model, kind);
            } else {
                const Kind kind = {false, false};
                add_square(part, own, ROW, &met, lane, 0, 0, &model, kind);
            }
            // A row with itself has each pair twice, once for either atom; so energies count double everywhere.
            const real share = step == 0 ? 1 : 2;
            total[0].lennard_jones += share * part[0].lennard_jones;
            total[0].coulomb += share * part[0].coulomb;
            total[0].gb += share * part[0].gb;
            #pragma unroll
            for (int v = 0; v < ROW; ++v) {
                total[v].x += part[v].x;
                total[v].y += part[v].y;
                total[v].z += part[v].z;
                total[v].radius += part[v].radius;
            }
#if GRADIENT
            const real4 back = over_shares(met_recoil[lane] + met_recoil[lane + TILE], all_recoil);
            if (first_share && step > 0)
                layers[layer_slot(&ring, conformation, layer_of_step(&ring, step), tile, n_tiles) + lane] = back;
#endif
        }
    }
    const real4 own_energies = (real4)(total[0].lennard_jones, total[0].coulomb, total[0].gb, 0);
    const real4 all_energies = over_shares(own_energies, all_recoil);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (first_share) all_recoil[lane] = all_energies;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (first_share && lane == 0) {
        real4 sum = 0;
        for (int k = 0; k < TILE; ++k) sum += all_recoil[k];
        energies[((size_t)conformation * ring.all_chunks + ring.first_chunk + chunk) * n_rows + row] = sum;
    }
#if GRADIENT
    #pragma unroll
    for (int v = 0; v < ROW; ++v) {
        const real4 own_total = (real4)(total[v].x, total[v].y, total[v].z, total[v].radius);
        const real4 all_total = over_shares(own_total, all_recoil);
        if (first_share && v < n_own) layers[layer_slot(&ring, conformation, chunk, own_tiles[v], n_tiles) + lane] = all_total;
    }
#endif
#if FUSED
    local int last_tiles[TILE];
    volatile local int n_last;
    collect_last(row, begin, end, n_tiles, all_recoil, last_tiles, &n_last, COLLECTED);
#endif
}
