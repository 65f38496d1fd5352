// Energies of pairs of residues. Each work-item owns a pair of residues of one conformation (third dimension); the
// second dimension gives the first residue. Pairs whose second residue precedes the first are skipped. For atoms of the
// same part, receptor or ligand, the GB energy is computed twice: with the Born radii of the complex and of the part.
#include "common/real.clh"
#include "binding/gb.clh"
#include "binding/groups.clh"

kernel void residue_pairs(
    GROUP_PARAMETERS,                 // groups are residues
    global real *restrict energies)  // (n_conformations, 4, n_groups, n_groups) Lennard-Jones, Coulomb, GB of the complex, GB
                                     // of the part, 0 between the parts [kcal/mol]
{
    const int second = get_global_id(0), first = get_global_id(1), conformation = get_global_id(2);
    if (first >= n_groups || second >= n_groups || second < first) return;
    const size_t at = (size_t)conformation * n_atoms;
    const bool same_side = sides[first] == sides[second];
    const Kind with_masks = {true, false};
    real lennard_jones = 0, coulomb = 0, gb = 0, gb_of_part = 0;
    for (int i = starts[first]; i < starts[first + 1]; ++i) {
        const real4 point = points[at + i];
        const real2 own_born = born[at + i];
        const Atom own = atom_of(point, traits_of(own_born, wells[i]));
        const int begin = first == second ? i + 1 : starts[second], last = excluded_starts[i + 1];
        int next = excluded_starts[i];
        while (next < last && excluded[next] < begin) ++next;
        real row_lennard_jones = 0, row_coulomb = 0, row_gb = 0, row_gb_of_part = 0;
        for (int j = begin; j < starts[second + 1]; ++j) {
            const bool is_excluded = next < last && excluded[next] == j;
            next += is_excluded;
            const real2 other_born = born[at + j];
            const real4 traits = traits_of(other_born, wells[j]);
            const Pair pair = evaluate_pair(&own, points[at + j], traits, is_excluded, false, &model, with_masks);
            row_lennard_jones += pair.lennard_jones;
            row_coulomb += pair.coulomb;
            row_gb += pair.gb;
            if (same_side) {
                const real r2 = pair.dx * pair.dx + pair.dy * pair.dy + pair.dz * pair.dz;
#if CUTOFF
                if (r2 > model.cutoff2) continue;
#endif
                row_gb_of_part += gb_of(point.w * points[at + j].w, r2, own_born.y * other_born.y, &model);
            }
        }
        // Partial sums per atom keep float32 accurate.
        lennard_jones += row_lennard_jones;
        coulomb += row_coulomb;
        gb += row_gb;
        gb_of_part += row_gb_of_part;
    }
    const size_t square = (size_t)n_groups * n_groups;
    global real *out = energies + (size_t)conformation * 4 * square + (size_t)first * n_groups + second;
    out[0] = lennard_jones;
    out[square] = coulomb;
    out[2 * square] = gb;
    out[3 * square] = gb_of_part;
}
