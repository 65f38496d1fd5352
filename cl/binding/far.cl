// Energies that PELE omits beyond its long cutoffs: Lennard-Jones, Coulomb and GB between distant groups. Each
// work-item owns an atom of one conformation (second dimension) and loops over the groups before its own. Atoms are
// sorted by group.
#include "common/real.clh"
#include "binding/gb.clh"
#include "binding/groups.clh"

kernel void far_groups(
    GROUP_PARAMETERS,
    global const real4 *restrict centroids,  // (n_conformations, n_groups) x, y, z [A]; w is 1 for a charged group, else 0
    global const int *restrict groups,       // (n_atoms) group of each atom
    global const real *restrict inverses,    // (n_atoms) 1/eps of the solute at each atom
    const real neutral2,                     // squares of the cutoffs [A^2]: of two neutral groups,
    const real mixed2,                       // of a neutral and a charged one,
    const real charged2,                     // of two charged ones
    global real2 *restrict energies)         // (n_conformations, n_atoms) of the complex, and of the parts [kcal/mol]
{
    const int i = get_global_id(0), conformation = get_global_id(1);
    if (i >= n_atoms) return;
    const size_t at = (size_t)conformation * n_atoms, at_group = (size_t)conformation * n_groups;
    const int own_group = groups[i];
    const real4 centre = centroids[at_group + own_group];
    const real4 point = points[at + i];
    const real2 own_born = born[at + i];
    const Atom own = atom_of(point, traits_of(own_born, wells[i]));
    const Kind with_masks = {true, false};
    const int last = excluded_starts[i + 1];
    int next = excluded_starts[i];
    real whole = 0, parts = 0;
    for (int group = 0; group < own_group; ++group) {
        const real4 other = centroids[at_group + group];
        const real x = centre.x - other.x, y = centre.y - other.y, z = centre.z - other.z;
        const real charged = centre.w + other.w;
        const real cutoff2 = charged > (real)1.5 ? charged2 : charged > (real)0.5 ? mixed2 : neutral2;
        if (x * x + y * y + z * z <= cutoff2) continue;
        const bool same_side = sides[group] == sides[own_group];
        while (next < last && excluded[next] < starts[group]) ++next;
        // Partial sums per group keep float32 accurate.
        real of_whole = 0, of_parts = 0;
        for (int j = starts[group]; j < starts[group + 1]; ++j) {
            const bool is_excluded = next < last && excluded[next] == j;
            next += is_excluded;
            const real2 other_born = born[at + j];
            const real4 traits = traits_of(other_born, wells[j]);
            const Pair pair = evaluate_pair(&own, points[at + j], traits, is_excluded, false, &model, with_masks);
            const real less = fmin(inverses[i], inverses[j]) - (real)1, charges = point.w * points[at + j].w;
            const real r2 = pair.dx * pair.dx + pair.dy * pair.dy + pair.dz * pair.dz;
            const real direct = pair.lennard_jones + pair.coulomb * ((real)1 + less);
            of_whole += direct + pair.gb - less * charges * inverse_f(r2, own_born.x * other_born.x);
            if (same_side) {
                const real product = own_born.y * other_born.y;
                of_parts += direct + gb_of(charges, r2, product, &model) - less * charges * inverse_f(r2, product);
            }
        }
        whole += of_whole;
        parts += of_parts;
    }
    energies[at + i] = (real2)(whole, parts);
}
