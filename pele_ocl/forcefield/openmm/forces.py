"""Access to the forces of an OpenMM System by class, and to their parameters as numbers."""

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

# OpenMM's units are nm, kJ/mol and rad.
A_PER_NM = 10.0
KCAL_PER_KJ = 1 / JOULE_PER_CALORIE


@dataclass(frozen=True)
class Forces:
    """Forces of a System by class name."""

    by_class: dict[str, list[Force]]

    def of(self, name: str) -> list[Force]:
        """Return all forces of a class."""
        return self.by_class.get(name, [])

    def rows(self, name: str, count: str, get: str, width: int) -> Floats:
        """Return the terms of all forces of a class, (m, width): rows of atoms and parameters in OpenMM's units."""
        return np.concatenate([np.empty((0, width)), *(terms(force, count, get, width) for force in self.of(name))])

    def pairs(self, name: str, count: str, get: str) -> Ints:
        """Return the first two atoms of each term, (m, 2), i < j."""
        found = [getattr(force, get)(k)[:2] for force in self.of(name) for k in range(getattr(force, count)())]
        return np.sort(np.array(found, np.int32).reshape(-1, 2), axis=1)


def form(expression: str) -> frozenset[str]:
    """Normalize a custom energy expression: its parts without blanks, in any order, and without the value of pi."""
    parts = re.sub(r"\s", "", expression).split(";")
    return frozenset(part for part in parts if part and not part.startswith("pi=3.14"))


def terms(force: Force, count: str, get: str, width: int) -> Floats:
    """Return the terms of one force, (m, width), in OpenMM's units."""
    getter = getattr(force, get)
    found = [plain(getter(k)) for k in range(getattr(force, count)())]
    return np.array(found, np.float64).reshape(-1, width)


def plain(values: Sequence[float | tuple[float, ...]]) -> list[float]:
    """Flatten numbers, quantities and tuples of them to a list of numbers.

    Quantities from forces have OpenMM's units, so their values are used directly, which is ten times faster than
    converting them.
    """
    flat: list[float] = []
    for value in values:
        if isinstance(value, tuple):
            flat.extend(value)
        else:
            flat.append(value)
    return [getattr(value, "_value", value) for value in flat]
