// Tiles of WIDTH atoms that are neighbours in space, one atom a lane, and the other atoms of their pairs one after the
// other: each pair once. docs/variants-nonbond.md, "tiled", has a drawing.
//
// A work-item takes a share of the tiles. What its pairs give to the atoms' gradients it adds to an array of its own, so
// that nobody races; a second kernel adds the arrays up. The same bits every run.
#include "real.clh"
#include "nonbond.clh"
#include "sums.clh"

#ifndef ENTRIES
#error "ENTRIES: entries computed at a time, so that the latencies of one are filled by the others"
#endif
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

INLINE void add_entries(
    Sums *sums, const Atom *tile, maskv bits, int begin, int end, const bool one_four, List list, const Model *model) {
    for (int k = begin; k < end; k += ENTRIES) {
        Pair pair[ENTRIES];
        realv gx_[ENTRIES], gy_[ENTRIES], gz_[ENTRIES];
        #pragma unroll
        for (int e = 0; e < ENTRIES; ++e) {
            const uint2 entry = list.entries[k + e];
            const Atom other = atom_of(list.places[entry.x], list.traits[entry.x]);
            const maskv listed = ((maskv)(SAME_BITS)entry.y & bits) != 0;
            pair[e] = evaluate_pair(tile, &other, OWN_VALUES_OF(k + e), listed, one_four, model);
        }
        #pragma unroll
        for (int e = 0; e < ENTRIES; ++e) {
            sums->lennard_jones += pair[e].lennard_jones;
            sums->coulomb += pair[e].coulomb;
            sums->gb += pair[e].gb;
#if GRADIENT
            const realv gx = pair[e].slope * pair[e].dx, gy = pair[e].slope * pair[e].dy, gz = pair[e].slope * pair[e].dz;
            sums->gx += gx;
            sums->gy += gy;
            sums->gz += gz;
            gx_[e]=gx; gy_[e]=gy; gz_[e]=gz;
#endif
        }
#define QQ(v) v##0
#define UNPACK(a,b,o,p) (realv)(a.s##o,b.s##o,a.s##p,b.s##p, 0)
        for (int e = 0; e < ENTRIES; e += 4) {
            realv s[3];
            #pragma unroll
            for (int c = 0; c < 3; ++c) {
                const realv *g = c == 0 ? gx_ : c == 1 ? gy_ : gz_;
                const realv ab = (realv)(g[e].lo, g[e+1].lo) + (realv)(g[e].hi, g[e+1].hi);
                const realv cd = (realv)(g[e+2].lo, g[e+3].lo) + (realv)(g[e+2].hi, g[e+3].hi);
                s[c] = (realv)(ab.lo.lo, ab.hi.lo, cd.lo.lo, cd.hi.lo) + (realv)(ab.lo.hi, ab.hi.hi, cd.lo.hi, cd.hi.hi);
            }
            const realv x = s[0], y = s[1], z = s[2];
            const realv xy = (realv)(x.s0,y.s0,x.s1,y.s1, x.s4,y.s4,x.s5,y.s5, x.s8,y.s8,x.s9,y.s9, x.sc,y.sc,x.sd,y.sd)
                           + (realv)(x.s2,y.s2,x.s3,y.s3, x.s6,y.s6,x.s7,y.s7, x.sa,y.sa,x.sb,y.sb, x.se,y.se,x.sf,y.sf);
            const realv zz = z + z.s23016745ab89efcd;
            const realv r = (realv)(xy.s01, zz.s00, xy.s45, zz.s44, xy.s89, zz.s88, xy.scd, zz.scc) + (realv)(xy.s23, zz.s11, xy.s67, zz.s55, xy.sab, zz.s99, xy.sef, zz.sdd);
            list.gradient[list.entries[k + e].x] -= r.lo.lo;
            list.gradient[list.entries[k + e+1].x] -= r.lo.hi;
            list.gradient[list.entries[k + e+2].x] -= r.hi.lo;
            list.gradient[list.entries[k + e+3].x] -= r.hi.hi;
        }
    }
}

kernel void nonbond_tiled(
    const Model model,
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
    const maskv bits = lane_bits();
    real4 energy = 0;
    // Tiles whose entries begin in this part's share of all entries.
    const long n_entries = offsets[2 * n_tiles];
    const long first = n_entries * part / n_parts, last = n_entries * (part + 1) / n_parts;
    for (int tile = 0; tile < n_tiles; ++tile) {
        const int begin = offsets[2 * tile], middle = offsets[2 * tile + 1], end = offsets[2 * tile + 2];
        if (begin < first || begin >= last || begin == end) continue;
        const Atom atoms = atoms_of_tile(places + WIDTH * tile, traits + WIDTH * tile);
        Sums sums = {0, 0, 0, 0, 0, 0};
        add_entries(&sums, &atoms, bits, begin, middle, false, list, &model);
        add_entries(&sums, &atoms, bits, middle, end, true, list, &model);
        energy += sums_of_lanes(sums.lennard_jones, sums.coulomb, sums.gb);
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
