// Records of the atoms (nonbond/pair.clh) from their positions, for all conformations. One work-item per slot.
#include "common/real.clh"
#include "nonbond/pair.clh"
#include "nonbond/point.clh"

kernel void place_atoms(
    const int n_slots,
    const int n_atoms,
    STEP_ARGUMENT
    global const position *restrict positions,    // (n_conformations, n_atoms, 3) relative to the centre of the molecule
    global const int *restrict order,             // (n_slots) atom of each slot
    global const real *restrict charges,          // (n_slots)
#if GB
    global const real4 *restrict constants,       // (n_slots) traits without Born radii
    global const real *restrict roots,            // (n_conformations, n_atoms) sqrt(1 / Born radius)
    global real4 *restrict traits,                // (n_conformations, n_slots)
#endif
    global point4 *restrict points)               // (n_conformations, n_slots)
{
    const int slot = get_global_id(0), conformation = get_global_id(2);
    if (slot >= n_slots) return;
    const size_t atom = (size_t)conformation * n_atoms + order[slot], at = (size_t)conformation * n_slots + slot;
    points[at] = point_of(PASS_STEP positions + 3 * atom, charges[slot]);
#if GB
    traits[at] = trait_of(constants[slot], roots[atom]);
#endif
}
