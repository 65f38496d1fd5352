// The records of the atoms (nonbond/pair.clh) from their positions, one conformation after the other: a work-item makes
// those of one slot.
#include "common/real.clh"
#include "nonbond/pair.clh"

#if REAL_BITS == 32
#define CHARGE_BITS(charge) as_int(charge)
#else
#define CHARGE_BITS(charge) (charge)
#endif

kernel void place_atoms(
    const int n_slots,
    const int n_atoms,
    global const coordinate *restrict positions,  // (n_conformations, n_atoms, 3) from the molecule's middle [steps]
    global const int *restrict order,             // (n_slots) which atom stands in each slot
    global const real *restrict charges,          // (n_slots)
#if GB
    global const real4 *restrict constants,       // (n_slots) traits, but for Born radii
    global const real *restrict roots,            // (n_conformations, n_atoms) sqrt(1 / Born radius)
    global real4 *restrict traits,                // (n_conformations, n_slots)
#endif
    global place4 *restrict places)               // (n_conformations, n_slots)
{
    const int slot = get_global_id(0), conformation = get_global_id(2);
    if (slot >= n_slots) return;
    const size_t atom = (size_t)conformation * n_atoms + order[slot], at = (size_t)conformation * n_slots + slot;
    places[at] = (place4)(positions[3 * atom], positions[3 * atom + 1], positions[3 * atom + 2], CHARGE_BITS(charges[slot]));
#if GB
    real4 trait = constants[slot];
    trait.z = roots[atom];
    traits[at] = trait;
#endif
}
