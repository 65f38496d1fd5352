"""Units and physical constants.

The package uses angstrom (A) for lengths, elementary charges (e) for charges, kcal/mol for energies, kcal/mol/e for
potentials, K for temperatures, and mol/L for ionic strengths.
"""

from __future__ import annotations

import math
import re
import sys
from typing import Any

from .common import arguments
from .common.errors import InputError

# CODATA 2018. The first three are exact in the SI.
ELEMENTARY_CHARGE_C = 1.602176634e-19
AVOGADRO_PER_MOL = 6.02214076e23
BOLTZMANN_J_PER_K = 1.380649e-23
VACUUM_PERMITTIVITY_F_PER_M = 8.8541878128e-12
HARTREE_J = 4.3597447222071e-18
BOHR_A = 0.529177210903

JOULE_PER_CALORIE = 4.184  # thermochemical
BOLTZMANN_KCAL = BOLTZMANN_J_PER_K * AVOGADRO_PER_MOL / (1000 * JOULE_PER_CALORIE)  # kcal/mol/K
METER_PER_ANGSTROM = 1e-10
KCAL_DA_A2_PER_PS2 = 100 * JOULE_PER_CALORIE  # conversion from kcal/mol to Da A^2/ps^2
KJ_PER_MOL_NM = 1 / (10 * JOULE_PER_CALORIE)  # kJ/mol/nm, the unit of gradients in OpenMM, in kcal/mol/A

# Coulomb's constant k in E = k q q / r, 332.0637133 kcal A / (mol e^2). PELE prints 332.0637. The values in AMBER,
# 332.0522, and CHARMM, 332.0716, differ by up to 4e-5.
COULOMB_KCAL_A = (
    ELEMENTARY_CHARGE_C**2
    * AVOGADRO_PER_MOL
    / (4 * math.pi * VACUUM_PERMITTIVITY_F_PER_M * METER_PER_ANGSTROM)
    / (1000 * JOULE_PER_CALORIE)
)


# Bounds of permittivities and temperatures (K) that avoid overflow.
LEAST, MOST = 1e-3, 1e6


MOST_SALT = 20.0  # mol/L, above the solubility of alkali salts


def molar(name: str, value: object) -> float:
    """Check an ionic strength or a salt concentration in mol/L.

    Raises InputError for negative values, and for values above the solubility of salts, which are probably in mmol/L.
    """
    found = arguments.number(name, value, f"a number in mol/L, 0 to {MOST_SALT:g}", least=0)
    if found > MOST_SALT:
        text = f"{name} is {found:g} mol/L, but the maximum is {MOST_SALT:g} mol/L"
        raise InputError(f"{text}; for {found:g} mmol/L give {found / 1000:g}" if found < 1000 * MOST_SALT else text)
    return found


_TIMES = {"fs": 1.0, "ps": 1e3, "ns": 1e6, "us": 1e9}
# Unit names in strings, with conversion factors.
_IN = {
    "fs": _TIMES, "ps": {name: of / 1e3 for name, of in _TIMES.items()}, "K": {"K": 1.0},
    "1/ps": {"1/ps": 1.0, "/ps": 1.0, "ps^-1": 1.0}, "Da": {"Da": 1.0, "amu": 1.0},
}  # fmt: skip
_OF_OPENMM = {"fs": "femtosecond", "ps": "picosecond", "K": "kelvin", "1/ps": "picosecond", "Da": "dalton"}
_TEXT = re.compile(r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*(\S*)\s*")


def in_unit(name: str, value: object, unit: str) -> Any:
    """Convert a string, with or without a unit, or an OpenMM Quantity to a number.

    name : the keyword, for error messages; unit : "fs", "ps", "K", "1/ps" or "Da", also assumed for strings without a
        unit

    Other values are returned unchanged. Raises InputError for an incompatible unit or an invalid string.

    >>> in_unit("timestep", "0.001ps", "fs"), in_unit("temperature", "310 K", "K"), in_unit("timestep", 2.0, "fs")
    (1.0, 310.0, 2.0)
    """
    if isinstance(value, str):
        found = _TEXT.fullmatch(value)
        scale = _IN[unit].get(found[2] or unit) if found else None
        if found is None or scale is None:
            raise InputError(
                f"{name} is {arguments.described(value)}; expected a number in {unit}, or with its unit: "
                f"2{unit.removeprefix('1')}"
            )
        return _tidy(float(found[1]) * scale)
    if not hasattr(value, "value_in_unit"):
        return value
    of_openmm = sys.modules[type(value).__module__.rpartition(".")[0]]  # or parmed.unit, which is equivalent
    wanted = getattr(of_openmm, _OF_OPENMM[unit])
    try:
        number = value.value_in_unit(wanted**-1 if unit == "1/ps" else wanted)
    except TypeError:
        raise InputError(f"{name} is {value}; expected an amount in {unit}") from None
    return _tidy(number) if isinstance(number, float | int) else number


def _tidy(number: float) -> float:
    """Round off the last digits, which are affected by unit conversion."""
    return float(f"{number:.14g}")


def debye_kappa(ionic_strength: float, dielectric: float, temperature: float) -> float:
    """Return the inverse Debye length of a 1:1 electrolyte, 1/A (Debye and Hueckel 1923).

    kappa^2 = 2 e^2 N_A I / (eps_0 eps k_B T)

    ionic_strength : mol/L, 0 to 20
    dielectric : relative permittivity of the solvent, 0.001 to 1e6
    temperature : K, 0.001 to 1e6

    Raises InputError for other values.

    >>> round(pele_ocl.units.debye_kappa(0.15, 78.54, 298.15), 4)  # 1/A
    0.1273
    """
    molar("ionic_strength", ionic_strength)
    for name, value in (("dielectric", dielectric), ("temperature", temperature)):
        arguments.number(name, value, "a positive number, 0.001 to 1,000,000", least=LEAST, most=MOST)
    ions_per_m3 = 1000 * AVOGADRO_PER_MOL * ionic_strength
    permittivity = VACUUM_PERMITTIVITY_F_PER_M * dielectric
    per_m2 = 2 * ELEMENTARY_CHARGE_C**2 * ions_per_m3 / (permittivity * BOLTZMANN_J_PER_K * temperature)
    return math.sqrt(per_m2) * METER_PER_ANGSTROM


POTENTIAL_UNITS = ("kcal/mol/e", "kJ/mol/e", "kT/e", "mV", "V", "hartree/e", "e/A")


def potential_factor(unit: str, temperature: float = 298.15) -> float:
    """Return the conversion factor for potentials from kcal/mol/e to another unit.

    unit : one of POTENTIAL_UNITS
    temperature : K, 0.001 to 1e6; only used for kT/e

    Raises InputError for an unknown unit, or a temperature that is not positive.
    """
    if not arguments.is_among(unit, POTENTIAL_UNITS):
        raise InputError(
            f"unknown unit {arguments.described(unit)} of a potential; choose one of {', '.join(POTENTIAL_UNITS)}"
        )
    if not (arguments.is_finite(temperature) and LEAST <= temperature <= MOST):
        given = arguments.described(temperature)
        raise InputError(f"the temperature must be positive, in K; not {given}: {LEAST:g} to {MOST:,.0f} are possible")
    volt = 1000 * JOULE_PER_CALORIE / (AVOGADRO_PER_MOL * ELEMENTARY_CHARGE_C)
    return {
        "kcal/mol/e": 1.0,
        "kJ/mol/e": JOULE_PER_CALORIE,
        "kT/e": volt * ELEMENTARY_CHARGE_C / (BOLTZMANN_J_PER_K * temperature),
        "mV": 1000 * volt,
        "V": volt,
        "hartree/e": volt * ELEMENTARY_CHARGE_C / HARTREE_J,
        "e/A": 1 / COULOMB_KCAL_A,
    }[unit]
