// Tiles of WIDTH atoms that are neighbours in space, one atom a lane, and the other atoms of their pairs one after the
// other: each pair once. docs/variants-nonbond.md, "tiled", has a drawing.
//
// A work-item takes a share of the tiles. What its pairs give to the atoms' gradients it adds to an array of its own, so
// that nobody races; a second kernel adds the arrays up. The same bits every run.
#include "real.clh"
#include "nonbond.clh"
#include "sums.clh"

#ifndef ENTRIES
#error "ENTRIES: entries computed side by side: 4"
#endif
// Entries whose energies are summed by themselves, a multiple of ENTRIES. Of long lists most pairs are far and weak, and
// would be lost below the last digit of one sum; runs are added with what each addition loses (Kahan 1965).
#define RUN 512
#define EACH_ENTRY _Pragma("unroll") for (int e = 0; e < ENTRIES; ++e)
#ifndef GRADIENT
#error "GRADIENT: 1 for energy and gradient, 0 for the energy alone"
#endif

#if OWN_VALUES
#define OWN_VALUES_OF(entry) LOAD((entry) * WIDTH, list.lane_sigma2), LOAD((entry) * WIDTH, list.lane_charges)
#else
#define OWN_VALUES_OF(entry) 0, 0
#endif

typedef struct {
    global const uint2 *entries;      // (n_entries) place of the other atom, bit mask of lanes
    global const real *lane_sigma2;   // (n_entries, WIDTH) [A^2], where the list brings its own
    global const real *lane_charges;  // (n_entries, WIDTH) charge product times Coulomb's constant
    global const place4 *places;      // (n_places)
    global const real4 *traits;       // (n_places)
    global real4 *gradient;           // (n_places) of this work-item
} List;

typedef struct { realv lennard_jones, coulomb, gb, gx, gy, gz; } Sums;

// The atoms of a tile, one a lane.
INLINE Atom atoms_of_tile(global const place4 *places, global const real4 *traits) {
#if WIDTH == 1
    return atom_of(places[0], traits[0]);
#else
    coordinate x[WIDTH], y[WIDTH], z[WIDTH];
    real charge[WIDTH], sigma[WIDTH], well[WIDTH], root_inv_born[WIDTH], inv_inside[WIDTH];
    for (int lane = 0; lane < WIDTH; ++lane) {
        const place4 place = places[lane];
        const real4 trait = traits[lane];
        x[lane] = place.x;
        y[lane] = place.y;
        z[lane] = place.z;
        charge[lane] = CHARGE(place);
        sigma[lane] = trait.x;
        well[lane] = trait.y;
        root_inv_born[lane] = trait.z;
        inv_inside[lane] = trait.w;
    }
    const Atom atoms = {
        LOAD(0, x), LOAD(0, y), LOAD(0, z), LOAD(0, charge), LOAD(0, sigma), LOAD(0, well), LOAD(0, root_inv_born),
        LOAD(0, inv_inside),
    };
    return atoms;
#endif
}

INLINE maskv lane_bits(void) {
#if WIDTH == 1
    return 1;
#else
    SAME_BITS bits[WIDTH];
    for (int lane = 0; lane < WIDTH; ++lane) bits[lane] = (SAME_BITS)1 << lane;
    return LOAD(0, bits);
#endif
}

// Takes what a group of entries gives to the tile's atoms from its other atoms.
INLINE void take(List list, const uint *others, const realv *gx, const realv *gy, const realv *gz) {
    real4 taken[ENTRIES];
    sums_of_lanes(gx, gy, gz, taken);
    EACH_ENTRY list.gradient[others[e]] -= taken[e];
}

INLINE void add_entries(
    Sums *sums, const Atom *tile, maskv bits, int begin, int end, const bool one_four, List list, const Model *model) {
    realv gx[ENTRIES], gy[ENTRIES], gz[ENTRIES];
    uint others[ENTRIES];
    EACH_ENTRY { gx[e] = gy[e] = gz[e] = 0; others[e] = 0; }
    for (int k = begin; k < end; k += ENTRIES) {
        Between apart[ENTRIES];
        uint2 entry[ENTRIES];
        // One part of the work for all entries before the next, so that some compute while others wait.
        EACH_ENTRY {
            entry[e] = list.entries[k + e];
            const Atom other = atom_of(list.places[entry[e].x], list.traits[entry[e].x]);
            measure(&apart[e], tile, &other);
        }
#if GRADIENT
        take(list, others, gx, gy, gz);
#endif
        EACH_ENTRY invert(&apart[e], ((maskv)(SAME_BITS)entry[e].y & bits) != 0);
        EACH_ENTRY {
            const Atom other = atom_of(list.places[entry[e].x], list.traits[entry[e].x]);
            const Pair pair = evaluate_pair(&apart[e], tile, &other, OWN_VALUES_OF(k + e), one_four, model);
            sums->lennard_jones += pair.lennard_jones;
            sums->coulomb += pair.coulomb;
            sums->gb += pair.gb;
            gx[e] = pair.gx;
            gy[e] = pair.gy;
            gz[e] = pair.gz;
            sums->gx += pair.gx;
            sums->gy += pair.gy;
            sums->gz += pair.gz;
            others[e] = entry[e].x;
        }
    }
#if GRADIENT
    take(list, others, gx, gy, gz);
#endif
}

kernel void nonbond_tiled(
    const Model constants,
    const int n_tiles,
    const int n_parts,                         // work-items that share the tiles
    global const int *restrict offsets,        // (2 n_tiles + 1) where each tile's plain and 1-4 entries begin
    global const uint2 *restrict entries,      // (n_entries)
    global const real *restrict lane_sigma2,   // (n_entries, WIDTH), or unused
    global const real *restrict lane_charges,  // (n_entries, WIDTH), or unused
    global const place4 *restrict places,      // (n_tiles, WIDTH) the atoms' records by place
    global const real4 *restrict traits,       // (n_tiles, WIDTH)
    global real *restrict energies,            // (n_parts, 3) Lennard-Jones, Coulomb, GB [kcal/mol]
    global real4 *restrict gradients)          // (n_parts, n_tiles, WIDTH) [kcal/mol/step]
{
    const int part = get_global_id(0);
    if (part >= n_parts) return;
    const int n_places = WIDTH * n_tiles;
    const List list = {entries, lane_sigma2, lane_charges, places, traits, gradients + (size_t)part * n_places};
#if GRADIENT
    for (int i = 0; i < n_places; ++i) list.gradient[i] = (real4)0;
#endif
    const Model *model = &constants;
    const maskv bits = lane_bits();
    real4 energy = 0, lost = 0;
    // Tiles whose entries begin in this part's share of all entries.
    const long n_entries = offsets[2 * n_tiles];
    const long first = n_entries * part / n_parts, last = n_entries * (part + 1) / n_parts;
    for (int tile = 0; tile < n_tiles; ++tile) {
        const int begin = offsets[2 * tile], middle = offsets[2 * tile + 1], end = offsets[2 * tile + 2];
        if (begin < first || begin >= last || begin == end) continue;
        const Atom atoms = atoms_of_tile(places + WIDTH * tile, traits + WIDTH * tile);
        Sums sums = {0, 0, 0, 0, 0, 0};
        const realv charge = FIRST_CHARGE(&atoms);
        int run = begin;
        do {
            const int run_end = min(run + RUN, middle);
            add_entries(&sums, &atoms, bits, run, run_end, false, list, model);
            if (run_end == middle) add_entries(&sums, &atoms, bits, middle, end, true, list, model);
            const real4 more =
                sum_of_lanes(atoms.well * sums.lennard_jones, charge * sums.coulomb, charge * sums.gb * GB_FACTOR) - lost;
            const real4 total = energy + more;
            lost = (total - energy) - more;
            energy = total;
            sums.lennard_jones = sums.coulomb = sums.gb = 0;
            run = run_end;
        } while (run < middle);
#if GRADIENT
        real gx[WIDTH], gy[WIDTH], gz[WIDTH];
        STORE(sums.gx, 0, gx);
        STORE(sums.gy, 0, gy);
        STORE(sums.gz, 0, gz);
        for (int lane = 0; lane < WIDTH; ++lane)
            list.gradient[WIDTH * tile + lane] += (real4)(gx[lane], gy[lane], gz[lane], 0);
#endif
    }
    energies[3 * part] = energy.x;
    energies[3 * part + 1] = energy.y;
    energies[3 * part + 2] = energy.z;
}

kernel void add_gradients(
    const int n_atoms,
    const int n_places,
    const int n_parts,
    global const int *restrict place_of,     // (n_atoms)
    global const real4 *restrict gradients,  // (n_parts, n_places)
    global real *restrict gradient)          // (n_atoms, 3)
{
    const int i = get_global_id(0);
    if (i >= n_atoms) return;
    real4 sum = 0;
    for (int part = 0; part < n_parts; ++part) sum += gradients[(size_t)part * n_places + place_of[i]];
    gradient[3 * i] = sum.x;
    gradient[3 * i + 1] = sum.y;
    gradient[3 * i + 2] = sum.z;
}
