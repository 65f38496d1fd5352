"""Number of ions for a neutral system or a given salt concentration (docs/theory/ions.md)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import product
from numbers import Integral
from typing import Literal

from ..common import arguments
from ..common.errors import InputError
from ..units import AVOGADRO_PER_MOL, METER_PER_ANGSTROM, molar
from .species import Species, find_species

# Number of ions of each species, or "auto"; the order is that of placement.
Requests = Mapping[str, int | Literal["auto"]]

LITERS_PER_CUBIC_ANGSTROM = 1000 * METER_PER_ANGSTROM**3
MOST_IONS = 1_000_000


def count_ions(
    requests: Requests, charge: float, volume: float, neutralize: bool = False, concentration: float | None = None
) -> dict[Species, int]:
    """Return the number of ions to place of each species, in the order of the requests.

    requests : number of ions of each species, or "auto"
    charge : net charge of the molecule, e
    volume : volume available to ions, A^3
    neutralize : True to choose the "auto" number that brings the total charge closest to 0
    concentration : mol/L; with two "auto" species the concentration of the salt, which also neutralizes (eqs. 5 and 6),
        with a single one the concentration of that ion (eq. 7)

    Raises InputError for unknown species, counts out of range, and if "auto" is given without a rule or a rule without
    "auto".
    """
    asked = _checked(requests)
    automatic = [species for species, count in asked.items() if count is None]
    fixed = {species: count for species, count in asked.items() if count is not None}
    _check_rule(automatic, neutralize, concentration)
    charge += sum(species.charge * count for species, count in fixed.items())
    cation = next((species for species in automatic if species.charge > 0), None)
    anion = next((species for species in automatic if species.charge < 0), None)
    positive, negative = cation.charge if cation else 0, -anion.charge if anion else 0
    dissolved = (concentration or 0.0) * AVOGADRO_PER_MOL * LITERS_PER_CUBIC_ANGSTROM * volume
    if not dissolved <= MOST_IONS:  # False for NaN, if the concentration overflows and the volume is 0
        raise InputError(f"{concentration:g} mol/L are more than {MOST_IONS:,} ions; choose a lower concentration")
    if concentration is None:
        ideal = max(-charge, 0) / max(positive, 1), max(charge, 0) / max(negative, 1)
        n_cations, n_anions = _whole(ideal, charge, positive, negative)
    elif cation and anion:
        n_cations, n_anions = _whole(salt_ions(charge, dissolved, positive, negative), charge, positive, negative)
    else:
        n_cations = n_anions = round(dissolved)
    found = {cation: n_cations, anion: n_anions} | fixed
    return {species: found[species] for species in asked}


def salt_ions(charge: float, formula_units: float, positive: int, negative: int) -> tuple[float, float]:
    """Return the numbers of cations and anions that neutralize a charge in equilibrium with the bulk (eqs. 5 and 6).

    charge : charge to neutralize, e
    formula_units : formula units of the salt in the same volume of bulk solution
    positive, negative : valences of the cation and the anion, >= 1
    """
    divisor = math.gcd(positive, negative)
    bulk = formula_units * negative / divisor, formula_units * positive / divisor

    def counts(donnan: float) -> tuple[float, float]:
        return bulk[0] * math.exp(-positive * donnan), bulk[1] * math.exp(negative * donnan)

    low, high = -50.0, 50.0  # Donnan potential, kT/e
    for _ in range(100):
        middle = (low + high) / 2
        cations, anions = counts(middle)
        low, high = (middle, high) if charge + positive * cations - negative * anions > 0 else (low, middle)
    return counts(low)


def _whole(ideal: tuple[float, float], charge: float, positive: int, negative: int) -> tuple[int, int]:
    """Choose the integer counts with the smallest net charge; among these, the ones closest to the ideal counts."""

    def candidates(count: float, valence: int, other: int) -> range:
        return range(max(0, math.floor(count) - other), math.ceil(count) + other + 1) if valence else range(1)

    def badness(counts: tuple[int, int]) -> tuple[float, float]:
        left = charge + positive * counts[0] - negative * counts[1]
        return round(abs(left), 3), math.dist(counts, ideal)

    return min(product(candidates(ideal[0], positive, negative), candidates(ideal[1], negative, positive)), key=badness)


def _checked(requests: Requests) -> dict[Species, int | None]:
    """Validate the requests. Returns the count of each species, None for "auto"."""
    if not isinstance(requests, Mapping):
        given = arguments.described(requests)
        raise InputError(f'ions are {given}; expected a dictionary of numbers by name: {{"NA": 12, "CL": "auto"}}')
    asked: dict[Species, int | None] = {}
    for name, count in requests.items():
        species = find_species(name)
        if species in asked:
            raise InputError(f"the ion {species.name} is given twice; give the sum of the counts")
        if isinstance(count, str) and count == "auto":
            asked[species] = None
        elif isinstance(count, Integral) and 0 <= count <= MOST_IONS:
            asked[species] = int(count)
        else:
            given = count if isinstance(count, str | int | float) else arguments.described(count)
            raise InputError(f"{given!r} is not a number of {name} ions; expected a whole number from 0, or auto")
    return asked


def _check_rule(automatic: list[Species], neutralize: bool, concentration: float | None) -> None:
    arguments.flag("neutralize", neutralize)
    names = [f"{species.name}:auto" for species in automatic]
    if neutralize and concentration is not None:
        raise InputError("choose neutralize or concentration; adding salt at a concentration also neutralizes")
    if concentration is not None and not (arguments.is_finite(concentration) and concentration > 0):
        given = arguments.described(concentration)
        raise InputError(f"the concentration must be a positive number of mol/L, not {given}")
    if concentration is not None:
        molar("the concentration", concentration)
    if automatic and not neutralize and concentration is None:
        raise InputError(f"{names[0]} needs a rule: neutralize, or a concentration")
    signs = sorted(species.charge > 0 for species in automatic)
    if len(signs) != len(set(signs)):
        raise InputError(f"{' and '.join(names)} cannot be distinguished; give one of them a number")
    if neutralize and not automatic:
        raise InputError("to neutralize, give a species as auto (NA:auto)")
    if concentration is not None and not automatic:
        raise InputError(
            "for a concentration, give a cation and an anion as auto (NA:auto and CL:auto), or one of them"
        )
