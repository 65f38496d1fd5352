"""Forces of an OpenMM System by class, and their parameters as plain numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...atoms import Floats, Ints
from ...units import JOULE_PER_CALORIE

if TYPE_CHECKING:
    from openmm import Force

# OpenMM's own units are nm, kJ/mol and rad.
A_PER_NM = 10.0
KCAL_PER_KJ = 1 / JOULE_PER_CALORIE


@dataclass(frozen=True)
class Forces:
    """Forces of a System by the name of their class."""

    by_class: dict[str, list[Force]]

    def of(self, name: str) -> list[Force]:
        """All forces of a class."""
        return self.by_class.get(name, [])

    def rows(self, name: str, count: str, get: str, width: int) -> Floats:
        """(m, width) the terms of all forces of a class: atoms and parameters as one row each, in OpenMM's units."""
        return np.concatenate([np.empty((0, width)), *(terms(force, count, get, width) for force in self.of(name))])

    def pairs(self, name: str, count: str, get: str) -> Ints:
        """(m, 2) the first two atoms of each term, i < j."""
        found = [getattr(force, get)(k)[:2] for force in self.of(name) for k in range(getattr(force, count)())]
        return np.sort(np.array(found, np.int32).reshape(-1, 2), axis=1)


def form(expression: str) -> frozenset[str]:
    """Split a custom energy into its parts, in any order and without blanks; the digits of pi are left out."""
    parts = re.sub(r"\s", "", expression).split(";")
    return frozenset(part for part in parts if part and not part.startswith("pi=3.14"))


def terms(force: Force, count: str, get: str, width: int) -> Floats:
    """(m, width) the terms of one force as numbers in OpenMM's units."""
    getter = getattr(force, get)
    found = [plain(getter(k)) for k in range(getattr(force, count)())]
    return np.array(found, np.float64).reshape(-1, width)


def plain(values: Sequence[float | tuple[float, ...]]) -> list[float]:
    """Numbers, quantities and tuples of them as one flat list of numbers.

    A force gives its quantities in OpenMM's own units. So their values are taken: converting takes ten times as long.
    """
    flat: list[float] = []
    for value in values:
        if isinstance(value, tuple):
            flat.extend(value)
        else:
            flat.append(value)
    return [getattr(value, "_value", value) for value in flat]
