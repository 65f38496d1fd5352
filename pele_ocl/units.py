"""The unit system and every physical constant.

Lengths are in angstrom (A), charges in elementary charges (e), energies in kcal/mol, potentials in kcal/mol/e,
temperatures in K and ionic strengths in mol/L, everywhere in the package.
"""

from __future__ import annotations

import math

# CODATA 2018. The first three are exact by definition of the SI.
ELEMENTARY_CHARGE_C = 1.602176634e-19
AVOGADRO_PER_MOL = 6.02214076e23
BOLTZMANN_J_PER_K = 1.380649e-23
VACUUM_PERMITTIVITY_F_PER_M = 8.8541878128e-12

JOULE_PER_CALORIE = 4.184  # thermochemical
METER_PER_ANGSTROM = 1e-10

# Coulomb's constant k of E = k q q / r, 332.0637133 kcal A / (mol e^2). PELE prints 332.0637; AMBER's 332.0522 and
# CHARMM's 332.0716 differ from it by up to 4e-5.
COULOMB_KCAL_A = (
    ELEMENTARY_CHARGE_C**2
    * AVOGADRO_PER_MOL
    / (4 * math.pi * VACUUM_PERMITTIVITY_F_PER_M * METER_PER_ANGSTROM)
    / (1000 * JOULE_PER_CALORIE)
)


def debye_kappa(ionic_strength: float, dielectric: float, temperature: float) -> float:
    """Inverse Debye length of a 1:1 electrolyte, 1/A (Debye and Hueckel 1923).

    kappa^2 = 2 e^2 N_A I / (eps_0 eps k_B T)

    ionic_strength : mol/L, >= 0
    dielectric : relative permittivity of the solvent, > 0
    temperature : K, > 0
    """
    ions_per_m3 = 1000 * AVOGADRO_PER_MOL * ionic_strength
    permittivity = VACUUM_PERMITTIVITY_F_PER_M * dielectric
    per_m2 = 2 * ELEMENTARY_CHARGE_C**2 * ions_per_m3 / (permittivity * BOLTZMANN_J_PER_K * temperature)
    return math.sqrt(per_m2) * METER_PER_ANGSTROM
