// The records of the atoms (nonbond/pair.clh) from their positions, one conformation after the other: a work-item makes
// those of one slot.
#include "common/real.clh"
#include "nonbond/pair.clh"

#ifndef FIXED_BITS
#error "FIXED_BITS: 32 where positions come in steps, 0 where they are doubles [A]"
#endif

#if FIXED_BITS
typedef int position;
#else
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef double position;
#endif

#if REAL_BITS == 64
#define IN_STEPS(position) (position)
#define CHARGE_BITS(charge) (charge)
#else
#define CHARGE_BITS(charge) as_int(charge)
#if FIXED_BITS
#define IN_STEPS(position) (position)
#else
#define IN_STEPS(position) convert_int_rte((position) * inv_step)
#endif
#endif

kernel void place_atoms(
    const int n_slots,
    const int n_atoms,
#if !FIXED_BITS
    const double inv_step,                        // steps in 1 A, a power of two
#endif
    global const position *restrict positions,    // (n_conformations, n_atoms, 3) from the molecule's middle
    global const int *restrict order,             // (n_slots) which atom stands in each slot
    global const real *restrict charges,          // (n_slots)
#if GB
    global const real4 *restrict constants,       // (n_slots) traits, but for Born radii
    global const real *restrict roots,            // (n_conformations, n_atoms) sqrt(1 / Born radius)
    global real4 *restrict traits,                // (n_conformations, n_slots)
#endif
    global point4 *restrict points)               // (n_conformations, n_slots)
{
    const int slot = get_global_id(0), conformation = get_global_id(2);
    if (slot >= n_slots) return;
    const size_t atom = (size_t)conformation * n_atoms + order[slot], at = (size_t)conformation * n_slots + slot;
    global const position *own = positions + 3 * atom;
    points[at] = (point4)(IN_STEPS(own[0]), IN_STEPS(own[1]), IN_STEPS(own[2]), CHARGE_BITS(charges[slot]));
#if GB
    real4 trait = constants[slot];
    trait.z = roots[atom];
    traits[at] = trait;
#endif
}
