// GB potential at every atom of all others. First dimension: own atoms; second: chunks of tiles; third: conformations.
#include "common/real.clh"
#include "solvent/potential.clh"

kernel void gb_potential(POTENTIAL_ARGUMENTS(restrict)) {
    add_potential(get_global_id(0) * WIDTH * VECTORS, get_global_id(1), POTENTIAL_PASSED);
}
