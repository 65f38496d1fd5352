// Pair energies over squares of two tiles, each pair once for both of its atoms, for GPUs; docs/variants-energy.md. Second
// dimension: chunks of steps around the ring; third: conformations.
#include "real.clh"
#include "tiles.clh"
#include "squares.clh"
#include "energy_pair.clh"

#if WIDTH != 1
#error "WIDTH: squares are for scalar work-items"
#endif
// A word of a mask has a bit for each step.
#define WORDS OWN_ATOMS

INLINE void add_square(
    Sums *sums, const Atom *own, local const real4 *points, local const real4 *traits, local real4 *recoil, int lane,
    int count, const int *excluded, const int *scaled, const Model *model, const Kind kind) {
    for (int word = 0; word < WORDS; ++word) {
        for (int step = 0; step < LANES; ++step) {
            const int bit = (lane + step) % LANES, j = word * LANES + bit;
            const real4 point = points[j], other = traits[j];
            real4 back = recoil[j];
            #pragma unroll
            for (int v = 0; v < OWN_ATOMS; ++v) {
                // An unused place may be where an atom is; it is left out like an atom itself.
                const int unused = j >= count;
                const int is_excluded = kind.masked ? (excluded[v * WORDS + word] >> bit & 1) | unused : 0;
                const int is_scaled = kind.masked ? (scaled[v * WORDS + word] >> bit & 1) | unused : 0;
                const Pair pair = evaluate_pair(own + v, point, other, is_excluded, is_scaled, model, kind);
                add_pair(sums + v, &pair, kind);
#if GRADIENT
                back.x -= pair.slope * pair.dx;
                back.y -= pair.slope * pair.dy;
                back.z -= pair.slope * pair.dz;
                if (!kind.bare) back.w += pair.radius;
#endif
            }
            recoil[j] = back;
            barrier(CLK_LOCAL_MEM_FENCE);
        }
    }
}

kernel __attribute__((reqd_work_group_size(LANES, 1, 1)))
void pair_squares(
    const int n_tiles,
    const int steps_per_chunk,
    const Model model,
    global const real4 *restrict points,        // (n_conformations, n_places) x, y, z from the tile's origin [A], charge
    global const real4 *restrict traits,        // (n_conformations, n_places) Born radius [A], its inverse, well
    global const real *restrict x,              // (n_conformations, n_places) the same as columns
    global const real *restrict y,
    global const real *restrict z,
    global const real *restrict born,
    global const real *restrict charges,        // (n_places)
    global const real *restrict sigmas,         // (n_places)
    global const real *restrict epsilons,       // (n_places)
    global const real4 *restrict origins,       // (n_conformations, n_tiles) [A]
    global const real4 *restrict extents,       // (n_conformations, n_tiles) half edges of the box [A]
    global const real *restrict largest_born,   // (n_conformations, n_tiles) [A]
    global const int *restrict counts,          // (n_tiles) atoms in the tile
    global const int *restrict special_starts,  // (n_tiles + 1) first of each tile's masked partners
    global const int *restrict specials,        // partners in the order of the ring
    global const SAME_BITS *restrict masks,     // (n_specials, 2, WORDS, TILE) bits of the partner, for each own atom
    global real *restrict sums,                 // (n_conformations, n_chunks, PAIR_SUMS, n_places)
    global real *restrict recoil)               // (n_conformations, n_tiles / 2, 4, n_places) what the others get
{
    local real4 met_points[TILE], met_traits[TILE], met_recoil[TILE];
    const int lane = get_local_id(0), row = get_global_id(0) / LANES;
    const int chunk = get_global_id(1), conformation = get_global_id(2);
    const int n_chunks = (n_tiles / 2 + steps_per_chunk) / steps_per_chunk, n_places = n_tiles * TILE;
    const size_t at = (size_t)conformation * n_places, box = (size_t)conformation * n_tiles;
    const real4 origin = origins[box + row], extent = extents[box + row];

    const real4 nowhere = 0;
    Atom placed[OWN_ATOMS];
    Sums total[OWN_ATOMS];
    #pragma unroll
    for (int v = 0; v < OWN_ATOMS; ++v) {
        const int i = row * TILE + v * LANES + lane;
        placed[v] = load_atom(i, nowhere, x + at, y + at, z + at, charges, born + at, sigmas, epsilons);
        total[v] = (Sums){0, 0, 0, 0, 0, 0, 0};
    }
    const int begin = chunk * steps_per_chunk, last = last_step_of(row, n_tiles);
    const int end = min(begin + steps_per_chunk, last + 1);
    int special = special_starts[row];
    const int last_special = special_starts[row + 1];
    while (special < last_special && (specials[special] - row + n_tiles) % n_tiles < begin) ++special;
    for (int step = begin; step < end; ++step) {
        const int tile = (row + step) % n_tiles, count = counts[tile];
        const real4 shift = origin - origins[box + tile];
        const real gap2 = box_gap2(shift, extent, extents[box + tile]);
        const bool masked = special < last_special && specials[special] == tile;
        Atom own[OWN_ATOMS];
        Sums part[OWN_ATOMS];
        #pragma unroll
        for (int v = 0; v < OWN_ATOMS; ++v) {
            const int j = v * LANES + lane;
            own[v] = placed[v];
            own[v].x += shift.x;
            own[v].y += shift.y;
            own[v].z += shift.z;
            part[v] = (Sums){0, 0, 0, 0, 0, 0, 0};
            met_points[j] = points[at + tile * TILE + j];
            met_traits[j] = traits[at + tile * TILE + j];
            met_recoil[j] = 0;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        const Kind common = {false, false}, bare = {false, true}, special_kind = {true, false};
        if (masked) {
            int excluded[OWN_ATOMS * WORDS], scaled[OWN_ATOMS * WORDS];
            global const SAME_BITS *words = masks + (size_t)special * 2 * WORDS * TILE;
            #pragma unroll
            for (int k = 0; k < OWN_ATOMS * WORDS; ++k) {
                const int place = k % WORDS * TILE + k / WORDS * LANES + lane;
                excluded[k] = (int)words[place];
                scaled[k] = (int)words[WORDS * TILE + place];
            }
            add_square(part, own, met_points, met_traits, met_recoil, lane, count, excluded, scaled, &model, special_kind);
            ++special;
        }
#if CUTOFF
        else if (gap2 > model.cutoff2) { }
#endif
        else if (gap2 > BARE_RADII2 * largest_born[box + row] * largest_born[box + tile])
            add_square(part, own, met_points, met_traits, met_recoil, lane, count, 0, 0, &model, bare);
        else
            add_square(part, own, met_points, met_traits, met_recoil, lane, count, 0, 0, &model, common);

        // A tile with itself has each pair twice, once for either atom; so energies count double everywhere.
        const real share = step == 0 ? 1 : 2;
        #pragma unroll
        for (int v = 0; v < OWN_ATOMS; ++v) {
            total[v].lennard_jones += share * part[v].lennard_jones;
            total[v].coulomb += share * part[v].coulomb;
            total[v].gb += share * part[v].gb;
            total[v].x += part[v].x;
            total[v].y += part[v].y;
            total[v].z += part[v].z;
            total[v].radius += part[v].radius;
#if GRADIENT
            if (step > 0) {
                const int j = v * LANES + lane;
                global real *out = recoil + recoil_place(conformation, step, tile, n_tiles) + j;
                out[0] = met_recoil[j].x;
                out[n_places] = met_recoil[j].y;
                out[2 * n_places] = met_recoil[j].z;
                out[3 * n_places] = met_recoil[j].w;
            }
#endif
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    global real *out = sums + ((size_t)conformation * n_chunks + chunk) * PAIR_SUMS * n_places;
    #pragma unroll
    for (int v = 0; v < OWN_ATOMS; ++v) {
        const int i = row * TILE + v * LANES + lane;
        out[LENNARD_JONES_SUM * n_places + i] = total[v].lennard_jones;
        out[COULOMB_SUM * n_places + i] = total[v].coulomb;
        out[GB_SUM * n_places + i] = total[v].gb;
        out[GRADIENT_SUM * n_places + i] = total[v].x;
        out[(GRADIENT_SUM + 1) * n_places + i] = total[v].y;
        out[(GRADIENT_SUM + 2) * n_places + i] = total[v].z;
        out[RADIUS_SUM * n_places + i] = total[v].radius;
    }
}
