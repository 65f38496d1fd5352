"""Bounds for errors of results relative to the float64 reference, and messages about variants that exceed them.

Tests use these bounds, and timing tables use them with a margin. Do not loosen a bound without knowing the cause.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from ..common.errors import PeleError
from ..solvent.accuracy import DEFAULT

ROOM = 10  # margin for other devices and structures than in the tests

Bounds = dict[str, float]  # by precision

# Largest error of any atom, if the terms of an atom are added in many partial sums.
BORN_RADIUS: Bounds = {"float64": 1e-10, "float32": 1e-5}

# Error of the total energy of a molecule, and of a single term, in which large contributions may cancel.
ENERGY: Bounds = {"float64": 1e-11, "float32": 2e-6}
TERM: Bounds = {"float64": 1e-9, "float32": 1e-4}

# Relative error by norm of a gradient, and of a potential map and its field.
GRADIENT: Bounds = {"float64": 1e-9, "float32": 5e-6}
MAP: Bounds = {"float64": 1e-12, "float32": 1e-6}

# Errors of float32 sums grow with the number of terms: 3e-6, 2e-5 and 5e-5 for 96, 1,231 and 4,427 terms, measured on
# the shipped structures and rounded up.
FEW_TERMS, ERROR_OF_FEW, GROWTH = 96, 3e-6, 0.73


def born_radius_bound(sums: int | None, precision: str, n_atoms: int, approximates: bool = False) -> float:
    """Return the bound for the largest error of a Born radius computed by a solvent variant.

    sums, approximates : attributes of the variant (variant.Variant)
    """
    if approximates:
        return max(BORN_RADIUS[precision], DEFAULT)
    if precision == "float64" or sums is None:
        return BORN_RADIUS[precision]
    return float(ERROR_OF_FEW * max(1.0, n_atoms / sums / FEW_TERMS) ** GROWTH)


class Timing(Protocol):
    """A row of a timing table with bounded errors.

    bounds : name of a field -> its upper bound
    exact : False if the variant is inexact by design, as noted in its table
    """

    @property
    def bounds(self) -> Mapping[str, float]: ...
    @property
    def exact(self) -> bool: ...


def bounded(**bounds: float) -> dict[str, float]:
    """Return the bounds of a row, including the margin of timing tables."""
    return {name: ROOM * bound for name, bound in bounds.items()}


def beyond(timing: Timing) -> dict[str, float]:
    """Return the errors of a row that exceed their bounds or are NaN.

    Unknown errors, None, are ignored.
    """
    errors = {name: getattr(timing, name) for name in timing.bounds}
    return {name: error for name, error in errors.items() if error is not None and not error <= timing.bounds[name]}


def mark(timing: Timing) -> str:
    """Return the mark of a row: "wrong", "inexact" (by design), or nothing if the row is correct."""
    if not beyond(timing):
        return ""
    return "  wrong" if timing.exact else "  inexact"


def refuse_wrong(timings: Iterable[tuple[str, Timing]]) -> None:
    """Raise PeleError with a sentence for each wrong row. timings : (name, row)"""
    sentences = [
        f"{name}: {field.replace('_', ' ')} {error:.1e}, more than {timing.bounds[field]:.0e}"
        for name, timing in timings
        if timing.exact
        for field, error in beyond(timing).items()
    ]
    if sentences:
        raise PeleError(f"wrong results: {'; '.join(sentences)}")
