// Born radii of a few atoms from all pairs, to measure the error of approximate radii: no tiles, no boxes, plain
// positions. One work-group per atom of the sample; its work-items share the other atoms, in vectors.
#include "common/real.clh"
#include "physics/hct.clh"
#include "physics/gb_radius.clh"
#include "solvent/hct_tiles.clh"

#ifndef GROUP
#error "GROUP: size of a work-group"
#endif

// Half of the HCT terms of an atom with a vector of others.
INLINE realv pair_terms(realv r2, realv rho, realv s, const Reaches *reaches) {
    const realv s2 = s * s, size = fabs(s), reach = fmax((real)FAR * size, reaches->largest_rho + size);
    maskv near = r2 < reach * reach;
#if RGB_MAX
    const realv within = fmax((real)0, reaches->rgb_max - size);
    near = near | (r2 > within * within);
#endif
    const realv farther = (real)FAR_B * size;
    if (!ANY(near | (r2 < farther * farther))) return hct_series(inverse(r2), s2, s2 * s, TERMS_B);
    const realv half_terms = hct_series(inverse(r2), s2, s2 * s, TERMS);
    if (!ANY(near)) return half_terms;
    const realv apart_r2 = fmax(r2, CLOSEST_R2), inv_r = inverse_sqrt(apart_r2);
    const realv closed = hct_closed(apart_r2 * inv_r, inv_r, rho, inverse(rho), s, reaches->rgb_max);
    return CHOOSE(half_terms, if_apart(closed, r2), near);
}

// Positions as columns; padding repeats the last atom.
kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void position_columns(
    const int n_atoms,
    const int n_places,
    global const real *restrict positions,  // (n_atoms, 3) [A]
    global real *restrict x,                // (n_places) [A]
    global real *restrict y,
    global real *restrict z)
{
    const int place = get_global_id(0);
    if (place >= n_places) return;
    const size_t first = 3 * (size_t)min(place, n_atoms - 1);
    x[place] = positions[first];
    y[place] = positions[first + 1];
    z[place] = positions[first + 2];
}

kernel __attribute__((reqd_work_group_size(GROUP, 1, 1)))
void sampled_radii(
    const int n_vectors,
    const Reaches reaches,
    NECK_PARAMETERS
    global const real *restrict x,          // (n_vectors * WIDTH) position [A]
    global const real *restrict y,
    global const real *restrict z,
    global const real *restrict s,          // (n_vectors * WIDTH) scaled radius [A]
    global const real *restrict rho,        // (n_vectors * WIDTH) offset radius [A]
    global const int *restrict sample,      // (n_sample) atom numbers
    RADIUS_PARAMETER,                       // physics/gb_radius.clh
    global const real *restrict radii,      // (n) intrinsic radius [A]
    global real *restrict born)             // (n_sample) Born radius [A]
{
    local real sums[GROUP];
    const int lane = get_local_id(0), atom = sample[get_group_id(0)];
    const Necks of_necks = NECKS_GIVEN;
    realv sum = 0;
    for (int k = lane; k < n_vectors; k += GROUP) {
        const int j = k * WIDTH;
        const realv dx = LOAD(j, x) - x[atom], dy = LOAD(j, y) - y[atom], dz = LOAD(j, z) - z[atom];
        const realv r2 = dx * dx + dy * dy + dz * dz;
        sum += pair_terms(r2, rho[atom], LOAD(j, s), &reaches);
#if NECK
        const maskv have = have_necks(r2, LOAD(j, rho), rho[atom], &reaches);
        if (ANY(have)) {
            const NeckRow row = neck_row(n_vectors * WIDTH, j, &of_necks);
            const NeckPair neck = neck_pair(&row, kinds[atom]);
            const realv apart = sqrt(fmax(r2, CLOSEST_R2)) - neck.given_distance;
            sum += CHOOSE((real)0, neck_integral(apart, neck.given_size), have);
        }
#endif
    }
    sums[lane] = lane_sum(sum);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane) return;
    real integral = 0;
    for (int k = 0; k < GROUP; ++k) integral += sums[k];
    born[get_group_id(0)] = born_radius(rho[atom] * integral, rho[atom], radii[atom], constants_of(radius_constants, atom));
}
