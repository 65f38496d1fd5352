// Virtual sites: massless particles whose positions depend on those of their parents. They are placed before an
// evaluation, and afterwards their gradients are distributed to the parents. One work-item per cluster of sites with
// common parents, so that writes never conflict, and per conformation (third dimension). The rule is defined in
// pele_ocl/atoms/sites.py; positions are relative to the first parent.
#include "common/real.clh"
#include "engine/arguments.clh"
#include "common/vector.clh"
#include "energy/results.clh"

#define N_PARENTS 4
#define N_WEIGHTS 13  // origin, x and y of the parents after the first, cross, local

// Parameters of both kernels.
#define SITE_PARAMETERS \
    const int n_clusters, \
    global const int *restrict starts,          /* (n_clusters + 1) first site of each cluster */ \
    global const int *restrict sites,           /* (n_sites) their atoms */ \
    global const int *restrict parents,         /* (n_sites, N_PARENTS) atoms */ \
    global const fine *restrict weights         /* (n_sites, N_WEIGHTS) */

// Vectors of a site's rule: X, Y, X x Y, and the inverse lengths of X and X x Y.
typedef struct { Vector apart[N_PARENTS], x, y, z; fine inverse_x, inverse_z; } Frame;

INLINE Vector weighted(const Vector *apart, global const fine *by) {
    return combined(by[0], apart[1], 1, combined(by[1], apart[2], by[2], apart[3]));
}

INLINE void find_frame(
    Frame *own, global const coordinate *positions, global const int *atoms, global const fine *by, real step) {
    for (int k = 1; k < N_PARENTS; ++k) own->apart[k] = vector_between(positions, atoms[k], atoms[0], step);
    own->x = weighted(own->apart, by + 3);
    own->y = weighted(own->apart, by + 6);
    own->z = cross_product(own->x, own->y);
    own->inverse_x = inverse_root(dot_product(own->x, own->x));
    own->inverse_z = inverse_root(dot_product(own->z, own->z));
}

kernel void place_sites(
    const int n_atoms,
    const real step,                            // length of a coordinate unit [A]
    SITE_PARAMETERS,
    global coordinate *restrict positions)      // (n_conformations, n_atoms, 3)
{
    SERVES_ROWS(place_sites)
    const int cluster = get_global_id(0), conformation = get_global_id(2);
    if (cluster >= n_clusters) return;
    global coordinate *own = positions + (size_t)conformation * 3 * n_atoms;
    for (int k = starts[cluster]; k < starts[cluster + 1]; ++k) {
        global const int *atoms = parents + N_PARENTS * k;
        global const fine *by = weights + N_WEIGHTS * k;
        Frame frame;
        find_frame(&frame, own, atoms, by, step);
        const Vector u = combined(frame.inverse_x, frame.x, 0, frame.x), w = combined(frame.inverse_z, frame.z, 0, frame.z);
        Vector from = combined(1, weighted(frame.apart, by), by[9], frame.z);
        from = combined(1, from, 1, combined(by[10], u, by[12], w));
        from = combined(1, from, by[11], cross_product(w, u));
        global const coordinate *first = own + 3 * (size_t)atoms[0];
        global coordinate *to = own + 3 * (size_t)sites[k];
        to[0] = shifted(first[0], from.x, step);
        to[1] = shifted(first[1], from.y, step);
        to[2] = shifted(first[2], from.z, step);
    }
}

// Adds a vector to the gradient of an atom.
INLINE void add_to(global real *gradient, int atom, Vector by) {
    global real *g = gradient + 3 * (size_t)atom;
    g[0] = (real)(g[0] + by.x);
    g[1] = (real)(g[1] + by.y);
    g[2] = (real)(g[2] + by.z);
}

// Gradient with respect to a vector v, from that with respect to its unit vector.
INLINE Vector unscaled(Vector slope, Vector unit, fine inverse) {
    return combined(inverse, slope, -inverse * dot_product(unit, slope), unit);
}

kernel void spread_sites(
    const int n_atoms,
    const int n_energies,                         // energies that precede the Born radii in the results, per atom or per tile
    const int n_results,                          // reals per conformation in the results
    const real step,                              // length of a coordinate unit [A]
    SITE_PARAMETERS,
    global const coordinate *restrict positions,  // (n_conformations, n_atoms, 3)
    global real *restrict results)                // energy/results.clh
{
    SERVES_ROWS(spread_sites)
    const int cluster = get_global_id(0), conformation = get_global_id(2);
    if (cluster >= n_clusters) return;
    global const coordinate *own = positions + (size_t)conformation * 3 * n_atoms;
    global real *gradient = results_of(results, conformation, n_results, n_energies, n_atoms).gradient;
    for (int k = starts[cluster]; k < starts[cluster + 1]; ++k) {
        global const int *atoms = parents + N_PARENTS * k;
        global const fine *by = weights + N_WEIGHTS * k;
        global real *of_site = gradient + 3 * (size_t)sites[k];
        const Vector g = {of_site[0], of_site[1], of_site[2]};
        of_site[0] = of_site[1] = of_site[2] = 0;
        Frame frame;
        find_frame(&frame, own, atoms, by, step);
        const Vector u = combined(frame.inverse_x, frame.x, 0, frame.x), w = combined(frame.inverse_z, frame.z, 0, frame.z);
        const Vector by_u = combined(by[10], g, by[11], cross_product(g, w));
        const Vector by_w = combined(by[12], g, by[11], cross_product(u, g));
        const Vector by_z = combined(by[9], g, 1, unscaled(by_w, w, frame.inverse_z));
        const Vector by_x = combined(1, unscaled(by_u, u, frame.inverse_x), 1, cross_product(frame.y, by_z));
        const Vector by_y = cross_product(by_z, frame.x);
        Vector rest = g;  // gradient of the first parent: what is left after the other parents
        for (int parent = 1; parent < N_PARENTS; ++parent) {
            const Vector part = combined(
                by[parent - 1], g, 1, combined(by[parent + 2], by_x, by[parent + 5], by_y));
            add_to(gradient, atoms[parent], part);
            rest = combined(1, rest, -1, part);
        }
        add_to(gradient, atoms[0], rest);
    }
}
