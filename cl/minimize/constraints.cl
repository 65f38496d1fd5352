// Constrained bonds to hydrogen in minimizations: projects gradients and steps onto the constraint surface;
// docs/theory/restraints.md, section 2. One work-item per heavy atom with its hydrogens and structure (third
// dimension).
#include "common/real.clh"
#include "engine/arguments.clh"
#include "common/vector.clh"
#include "energy/results.clh"

#ifndef MOST_HYDROGENS
#error "MOST_HYDROGENS: of a heavy atom"
#endif

// A heavy atom and its movable hydrogens: atom numbers, and indices among all hydrogens.
typedef struct { int center, moves, count, atoms[MOST_HYDROGENS], places[MOST_HYDROGENS]; } Cluster;

INLINE void find_cluster(
    Cluster *own, int number, global const int *heavy, global const int *starts, global const int *hydrogens,
    global const real *free) {
    own->center = heavy[number];
    own->moves = free[own->center] > 0;
    own->count = 0;
    for (int k = starts[number]; k < starts[number + 1]; ++k) {
        if (!(free[hydrogens[k]] > 0)) continue;
        own->atoms[own->count] = hydrogens[k];
        own->places[own->count++] = k;
    }
}

// Solution x of A x = b for a symmetric 3x3 matrix.
INLINE Vector solution(fine xx, fine xy, fine xz, fine yy, fine yz, fine zz, Vector b) {
    const Vector x = {yy * zz - yz * yz, xz * yz - xy * zz, xy * yz - xz * yy};
    const Vector y = {x.y, xx * zz - xz * xz, xy * xz - xx * yz}, z = {x.z, y.z, xx * yy - xy * xy};
    const fine inv = (fine)1 / (xx * x.x + xy * x.y + xz * x.z);
    const Vector found = {inv * dot_product(x, b), inv * dot_product(y, b), inv * dot_product(z, b)};
    return found;
}

INLINE Vector unit(Vector v) { return combined(inverse_root(dot_product(v, v)), v, 0, v); }

// Vectors from the heavy atom to each of its hydrogens.
INLINE void bonds_of(
    Vector *bonds, global const coordinate *positions, const Cluster *own, real step) {
    for (int k = 0; k < own->count; ++k) bonds[k] = vector_between(positions, own->atoms[k], own->center, step);
}

// Removes from vectors the components that would change bond lengths: first the vector of the heavy atom, 0 if it is
// frozen, then those of its hydrogens. The heavy atom changes by x with (1 + sum u u^T) x = sum u (u.(h - v)), the
// hydrogens along their bonds u.
INLINE void make_tangent(Vector *vectors, const Vector *bonds, int count, bool moves) {
    if (moves) {
        fine xx = 1, xy = 0, xz = 0, yy = 1, yz = 0, zz = 1;
        Vector b = {0, 0, 0};
        for (int k = 0; k < count; ++k) {
            const Vector u = unit(bonds[k]);
            xx += u.x * u.x;
            xy += u.x * u.y;
            xz += u.x * u.z;
            yy += u.y * u.y;
            yz += u.y * u.z;
            zz += u.z * u.z;
            b = combined(1, b, dot_product(u, combined(1, vectors[k + 1], -1, vectors[0])), u);
        }
        vectors[0] = combined(1, vectors[0], 1, solution(xx, xy, xz, yy, yz, zz, b));
    }
    for (int k = 0; k < count; ++k) {
        const Vector u = unit(bonds[k]);
        const fine along = dot_product(u, combined(1, vectors[k + 1], -1, vectors[0]));
        vectors[k + 1] = combined(1, vectors[k + 1], -along, u);
    }
}

// Removes from the gradient the components that would change bond lengths.
kernel void project_gradient(
    const int n_atoms,
    const int n_energies,                         // energies that precede the Born radii in the results, per atom or per tile
    const int n_results,                          // reals per conformation in the results
    const real step,                              // length of a coordinate unit [A]
    const int n_clusters,
    global const int *restrict heavy,             // (n_clusters) heavy atoms
    global const int *restrict starts,            // (n_clusters + 1) index of its first hydrogen
    global const int *restrict hydrogens,
    global const real *restrict free,             // (n_atoms) 0 for frozen atoms, else 1
    global const coordinate *restrict positions,  // (n_structures, n_atoms, 3) trial positions
    global real *restrict results)                // energy/results.clh
{
    SERVES_ROWS(project_gradient)
    const int cluster = get_global_id(0), structure = get_global_id(2);
    if (cluster >= n_clusters) return;
    Cluster own;
    find_cluster(&own, cluster, heavy, starts, hydrogens, free);
    const int center = own.center, moves = own.moves, count = own.count;
    global real *gradient = results_of(results, structure, n_results, n_energies, n_atoms).gradient;
    Vector bonds[MOST_HYDROGENS], vectors[MOST_HYDROGENS + 1];
    bonds_of(bonds, positions + (size_t)structure * 3 * n_atoms, &own, step);
    for (int k = 0; k <= count; ++k) {
        global const real *g = gradient + 3 * (size_t)(k ? own.atoms[k - 1] : center);
        const fine counts = k || moves;
        const Vector vector = {counts * g[0], counts * g[1], counts * g[2]};
        vectors[k] = vector;
    }
    make_tangent(vectors, bonds, count, moves);
    for (int k = moves ? 0 : 1; k <= count; ++k) {
        global real *g = gradient + 3 * (size_t)(k ? own.atoms[k - 1] : center);
        g[0] = (real)vectors[k].x;
        g[1] = (real)vectors[k].y;
        g[2] = (real)vectors[k].z;
    }
}

// Sets the position of an atom to that of atom `origin` plus a vector.
INLINE void put_position(
    global coordinate *positions, int atom, global const coordinate *from, int origin, Vector by, real step) {
    positions[3 * (size_t)atom] = shifted(from[3 * (size_t)origin], by.x, step);
    positions[3 * (size_t)atom + 1] = shifted(from[3 * (size_t)origin + 1], by.y, step);
    positions[3 * (size_t)atom + 2] = shifted(from[3 * (size_t)origin + 2], by.z, step);
}

// Restores bond lengths at the trials: removes from the step from the base the components that would change them, then
// moves each hydrogen along its bond to the required length.
kernel void hold_bonds(
    const int n_atoms,
    const real step,                            // length of a coordinate unit [A]
    const int n_clusters,
    global const int *restrict heavy,           // (n_clusters) heavy atoms
    global const int *restrict starts,          // (n_clusters + 1) index of its first hydrogen
    global const int *restrict hydrogens,
    global const real *restrict free,           // (n_atoms) 0 for frozen atoms, else 1
    global const fine *restrict lengths,        // (n_hydrogens) [A], negative to keep the length at the base
    global const coordinate *restrict base,     // (n_structures, n_atoms, 3)
    global coordinate *restrict positions)      // (n_structures, n_atoms, 3) trial positions
{
    SERVES_ROWS(hold_bonds)
    const int cluster = get_global_id(0), structure = get_global_id(2);
    if (cluster >= n_clusters) return;
    Cluster own;
    find_cluster(&own, cluster, heavy, starts, hydrogens, free);
    const int center = own.center, moves = own.moves, count = own.count;
    global const coordinate *from = base + (size_t)structure * 3 * n_atoms;
    global coordinate *to = positions + (size_t)structure * 3 * n_atoms;
    Vector bonds[MOST_HYDROGENS], vectors[MOST_HYDROGENS + 1];
    bonds_of(bonds, from, &own, step);
    for (int k = 0; k <= count; ++k) {
        const size_t at = 3 * (size_t)(k ? own.atoms[k - 1] : center);
        const Vector vector = {
            (fine)(to[at] - from[at]) * step, (fine)(to[at + 1] - from[at + 1]) * step,
            (fine)(to[at + 2] - from[at + 2]) * step};
        vectors[k] = vector;
    }
    make_tangent(vectors, bonds, count, moves);
    if (moves) put_position(to, center, from, center, vectors[0], step);
    for (int k = 0; k < count; ++k) {
        const fine given = lengths[own.places[k]], length = given < 0 ? sqrt(dot_product(bonds[k], bonds[k])) : given;
        const Vector after = combined(1, bonds[k], 1, combined(1, vectors[k + 1], -1, vectors[0]));
        put_position(to, own.atoms[k], to, center, combined(length, unit(after), 0, after), step);
    }
}
