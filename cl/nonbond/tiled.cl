// Tiles of up to eight neighbouring atoms, one atom per lane. The other atoms of their pairs are processed one at a
// time, or two if a vector holds the tile twice. Each pair is computed once. See "tiled" in docs/variants-nonbond.md
// for a drawing.
//
// Each work-item processes some of the tiles. It adds gradients to its own array, so that there are no races. A second
// kernel adds the arrays. Results are bitwise reproducible.
#include "common/real.clh"
#include "nonbond/pair.clh"
#include "common/sums.clh"
#include "nonbond/results.clh"

#ifndef TILE
#error "TILE: atoms of a tile: 8, or WIDTH where that is less"
#endif
#define OTHERS (WIDTH / TILE)  // 1, or 2 if a vector holds the tile twice
#ifndef ENTRIES
#error "ENTRIES: entries computed side by side: 4"
#endif
// Number of entries per partial sum of energies, a multiple of ENTRIES. In long lists most pairs are distant and weak,
// and would be lost to rounding in a single sum.
#define RUN 512
#define EACH_ENTRY _Pragma("unroll") for (int e = 0; e < ENTRIES; ++e)
#define EACH_OTHER _Pragma("unroll") for (int o = 0; o < OTHERS; ++o)
#ifndef GRADIENT
#error "GRADIENT: 1 for energy and gradient, 0 for the energy alone"
#endif

#if OWN_VALUES
#define OWN_VALUES_OF(entry) LOAD((entry) * WIDTH, list.lane_sigma2), LOAD((entry) * WIDTH, list.lane_charges)
#else
#define OWN_VALUES_OF(entry) 0, 0
#endif

typedef struct { uint others[OTHERS], lanes; } Entry;

typedef struct {
    global const Entry *entries;      // (n_entries) slots of the other atoms, bit mask of the lanes that contain a pair
    global const real *lane_sigma2;   // (n_entries, WIDTH) [A^2], for lists with their own values
    global const real *lane_charges;  // (n_entries, WIDTH) product of charges times Coulomb's constant
    global const point4 *points;      // (n_slots)
    global const real4 *traits;       // (n_slots)
    global real4 *gradient;           // (n_slots) of this work-item
} List;

typedef struct { realv lennard_jones, coulomb, gb, gx, gy, gz; } Sums;

// Atoms of a tile, one per lane.
INLINE Atom atoms_of_tile(global const point4 *points, global const real4 *traits) {
#if WIDTH == 1
    return atom_of(points[0], traits[0]);
#else
    coordinate x[WIDTH], y[WIDTH], z[WIDTH];
    real charge[WIDTH], sigma[WIDTH], well[WIDTH], root_inv_born[WIDTH], inv_inside[WIDTH];
    for (int lane = 0; lane < WIDTH; ++lane) {
        const point4 point = points[lane % TILE];
        const real4 trait = traits[lane % TILE];
        x[lane] = point.x;
        y[lane] = point.y;
        z[lane] = point.z;
        charge[lane] = CHARGE(point);
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

// The other atoms of an entry, each repeated over the lanes of one copy of the tile.
#if OTHERS == 1
INLINE Atom other_atoms(List list, global const Entry *entry) {
    return atom_of(list.points[entry->others[0]], list.traits[entry->others[0]]);
}
#else
#define PAIRED(type, first, second) (CAT(type, 16))((CAT(type, 8))(first), (CAT(type, 8))(second))
INLINE Atom other_atoms(List list, global const Entry *entry) {
    const point4 p = list.points[entry->others[0]], q = list.points[entry->others[1]];
    const real4 t = list.traits[entry->others[0]], u = list.traits[entry->others[1]];
    const Atom atoms = {
        PAIRED(COORDINATE, p.x, q.x), PAIRED(COORDINATE, p.y, q.y), PAIRED(COORDINATE, p.z, q.z),
        PAIRED(REAL, CHARGE(p), CHARGE(q)), PAIRED(REAL, t.x, u.x), PAIRED(REAL, t.y, u.y), PAIRED(REAL, t.z, u.z),
        PAIRED(REAL, t.w, u.w),
    };
    return atoms;
}
#endif

INLINE maskv lane_bits(void) {
#if WIDTH == 1
    return 1;
#else
    SAME_BITS bits[WIDTH];
    for (int lane = 0; lane < WIDTH; ++lane) bits[lane] = (SAME_BITS)1 << lane;
    return LOAD(0, bits);
#endif
}

// Adds the gradients of an entry's other atoms.
INLINE void take(List list, const Entry *entry, realv gx, realv gy, realv gz) {
    real4 sums[OTHERS];
    sums_of_eights(gx, gy, gz, sums);
    EACH_OTHER list.gradient[entry->others[o]] -= sums[o];
}

INLINE void add_entries(
    Sums *sums, const Atom *tile, maskv bits, int begin, int end, const bool one_four, List list, const ListModel *model) {
    realv gx[ENTRIES], gy[ENTRIES], gz[ENTRIES];
    Entry before[ENTRIES];
    EACH_ENTRY { gx[e] = gy[e] = gz[e] = 0; EACH_OTHER before[e].others[o] = 0; }
    for (int k = begin; k < end; k += ENTRIES) {
        Between apart[ENTRIES];
        // Each stage is computed for all entries before the next one, to overlap latencies.
        EACH_ENTRY {
            const Atom others = other_atoms(list, &list.entries[k + e]);
            measure(&apart[e], tile, &others);
        }
#if GRADIENT
        EACH_ENTRY take(list, &before[e], gx[e], gy[e], gz[e]);
#endif
        EACH_ENTRY invert(&apart[e], ((maskv)(SAME_BITS)list.entries[k + e].lanes & bits) != 0);
        EACH_ENTRY {
            const Atom others = other_atoms(list, &list.entries[k + e]);
            const Pair pair = evaluate_pair(&apart[e], tile, &others, OWN_VALUES_OF(k + e), one_four, model);
            sums->lennard_jones += pair.lennard_jones;
            sums->coulomb += pair.coulomb;
            sums->gb += pair.gb;
            gx[e] = pair.gx;
            gy[e] = pair.gy;
            gz[e] = pair.gz;
            sums->gx += pair.gx;
            sums->gy += pair.gy;
            sums->gz += pair.gz;
            before[e] = list.entries[k + e];
        }
    }
#if GRADIENT
    if (begin < end) {
        EACH_ENTRY take(list, &before[e], gx[e], gy[e], gz[e]);
    }
#endif
}

// Compensated addition (Kahan 1965): `lost` is the accumulated rounding error.
INLINE void add_exactly(realv *sum, realv *lost, realv value) {
    const realv more = value - *lost, total = *sum + more;
    *lost = (total - *sum) - more;
    *sum = total;
}

// First tile whose entries begin at `entry` or later; n_tiles if there is none.
INLINE int first_tile(global const int *offsets, int n_tiles, long entry) {
    int begin = 0, end = n_tiles;
    while (begin < end) {
        const int middle = begin + (end - begin) / 2;
        if (offsets[2 * middle] < entry) begin = middle + 1;
        else end = middle;
    }
    return begin;
}

kernel void nonbond_tiled(
    const ListModel constants,
    const int n_tiles,
    const int n_parts,                         // number of work-items that share the tiles
    const Destination to,
    global const int *restrict offsets,        // (2 n_tiles + 1) index of each tile's first plain entry and first 1-4 entry
    global const Entry *restrict entries,      // (n_entries)
    global const real *restrict lane_sigma2,   // (n_entries, WIDTH), or unused
    global const real *restrict lane_charges,  // (n_entries, WIDTH), or unused
    global const point4 *restrict points,      // (n_conformations, n_tiles, TILE) by slot
    global const real4 *restrict traits,       // ([n_conformations,] n_tiles, TILE)
    global real *restrict energies,            // nonbond/results.clh
    global real4 *restrict gradients)          // (n_conformations, n_parts, n_tiles, TILE) [kcal/mol/step]
{
    const int part = get_global_id(0), conformation = get_global_id(2);
    if (part >= n_parts) return;
    const int n_slots = TILE * n_tiles;
    const List list = {
        entries, lane_sigma2, lane_charges, points + (size_t)conformation * n_slots,
        traits + TRAITS_OF(conformation, n_slots), gradients + ((size_t)conformation * n_parts + part) * n_slots,
    };
#if GRADIENT
    for (int i = 0; i < n_slots; ++i) list.gradient[i] = (real4)0;
#endif
    const ListModel *model = &constants;
    const maskv bits = lane_bits();
    realv lennard_jones = 0, coulomb = 0, gb = 0, lost_lj = 0, lost_coulomb = 0, lost_gb = 0;
    // Tiles whose entries begin in this part's range of entries.
    const long n_entries = offsets[2 * n_tiles];
    const long first = n_entries * part / n_parts, last = n_entries * (part + 1) / n_parts;
    const int end_tile = first_tile(offsets, n_tiles, last);
    for (int tile = first_tile(offsets, n_tiles, first); tile < end_tile; ++tile) {
        const int begin = offsets[2 * tile], middle = offsets[2 * tile + 1], end = offsets[2 * tile + 2];
        if (begin == end) continue;
        const Atom atoms = atoms_of_tile(list.points + TILE * tile, list.traits + TILE * tile);
        Sums sums = {0, 0, 0, 0, 0, 0};
        const realv charge = FIRST_CHARGE(&atoms);
        int run = begin;
        do {
            const int run_end = min(run + RUN, middle);
            add_entries(&sums, &atoms, bits, run, run_end, false, list, model);
            if (run_end == middle) add_entries(&sums, &atoms, bits, middle, end, true, list, model);
            add_exactly(&lennard_jones, &lost_lj, atoms.well * sums.lennard_jones);
            add_exactly(&coulomb, &lost_coulomb, charge * sums.coulomb);
            add_exactly(&gb, &lost_gb, charge * sums.gb);
            sums.lennard_jones = sums.coulomb = sums.gb = 0;
            run = run_end;
        } while (run < middle);
#if GRADIENT
        real gx[WIDTH], gy[WIDTH], gz[WIDTH];
        STORE(sums.gx, 0, gx);
        STORE(sums.gy, 0, gy);
        STORE(sums.gz, 0, gz);
        for (int lane = 0; lane < WIDTH; ++lane)
            list.gradient[TILE * tile + lane % TILE] += (real4)(gx[lane], gy[lane], gz[lane], 0);
#endif
    }
    const real4 energy = sum_of_lanes(lennard_jones, coulomb, gb * GB_FACTOR);
    vstore3(energy.xyz, 0, energies_of(energies, &to, conformation, part));
}

kernel void add_gradients(
    const int n_atoms,
    const int n_slots,
    const int n_parts,
    const int n_shares,                      // number of work-items that share the atoms
    const Destination to,
    global const int *restrict slot_of,      // (n_atoms)
    global const real4 *restrict gradients,  // (n_conformations, n_parts, n_slots)
    global real *restrict results)           // nonbond/results.clh
{
    const int share = get_global_id(0), conformation = get_global_id(2);
    if (share >= n_shares) return;
    gradients += (size_t)conformation * n_parts * n_slots;
    global real *gradient = gradient_of(results, &to, conformation);
    const int first = (long)n_atoms * share / n_shares, last = (long)n_atoms * (share + 1) / n_shares;
    for (int i = first; i < last; ++i) {
        real4 sum = 0;
        #pragma unroll 8
        for (int part = 0; part < n_parts; ++part) sum += gradients[(size_t)part * n_slots + slot_of[i]];
        gradient[3 * i] = sum.x;
        gradient[3 * i + 1] = sum.y;
        gradient[3 * i + 2] = sum.z;
    }
}
