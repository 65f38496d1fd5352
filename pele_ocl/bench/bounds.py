"""Bounds of the errors of results, relative to the float64 reference, and what is said of variants beyond them.

Tests demand them, and timing tables with some room. Tighten freely; loosen only with the cause.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from ..common.errors import PeleError
from ..solvent.accuracy import DEFAULT

ROOM = 10  # on other devices and structures than those that the tests' bounds were found on

Bounds = dict[str, float]  # by precision

# The worst of all atoms, where the terms of an atom are added up in many partial sums.
BORN_RADIUS: Bounds = {"float64": 1e-10, "float32": 1e-5}

# Of a whole molecule's energy, and of one term of it, in which large parts may cancel.
ENERGY: Bounds = {"float64": 1e-11, "float32": 2e-6}
TERM: Bounds = {"float64": 1e-9, "float32": 1e-4}

# By norm: a gradient; a potential map and its field.
GRADIENT: Bounds = {"float64": 1e-9, "float32": 5e-6}
MAP: Bounds = {"float64": 1e-12, "float32": 1e-6}

# float32 sums of n terms in one number lose digits with n: 3e-6, 2e-5 and 5e-5 of 96, 1,231 and 4,427 terms, measured
# on the shipped structures with room.
FEW_TERMS, ERROR_OF_FEW, GROWTH = 96, 3e-6, 0.73


def born_radius_bound(sums: int | None, precision: str, n_atoms: int, approximates: bool = False) -> float:
    """Return the bound of the worst Born radius by a solvent variant.

    sums, approximates : as the variant declares them (variant.Variant)
    """
    if approximates:
        return max(BORN_RADIUS[precision], DEFAULT)
    if precision == "float64" or sums is None:
        return BORN_RADIUS[precision]
    return float(ERROR_OF_FEW * max(1.0, n_atoms / sums / FEW_TERMS) ** GROWTH)


class Timing(Protocol):
    """A row of a timing table with errors that have bounds.

    bounds : name of a field -> the largest that it may be
    exact : False where the variant is inexact by design, as its table says
    """

    @property
    def bounds(self) -> Mapping[str, float]: ...
    @property
    def exact(self) -> bool: ...


def bounded(**bounds: float) -> dict[str, float]:
    """Return the bounds of a row with the room that a timing table leaves."""
    return {name: ROOM * bound for name, bound in bounds.items()}


def beyond(timing: Timing) -> dict[str, float]:
    """Return the errors of a row beyond their bounds, or not numbers.

    An error that is not known is None and not one.
    """
    errors = {name: getattr(timing, name) for name in timing.bounds}
    return {name: error for name, error in errors.items() if error is not None and not error <= timing.bounds[name]}


def mark(timing: Timing) -> str:
    """Return the word after a row: "wrong", or "inexact" by design; nothing if the row is right."""
    if not beyond(timing):
        return ""
    return "  wrong" if timing.exact else "  inexact"


def refuse_wrong(timings: Iterable[tuple[str, Timing]]) -> None:
    """Raise PeleError with a sentence for each wrong row; timings : each with its name."""
    sentences = [
        f"{name}: {field.replace('_', ' ')} {error:.1e}, more than {timing.bounds[field]:.0e}"
        for name, timing in timings
        if timing.exact
        for field, error in beyond(timing).items()
    ]
    if sentences:
        raise PeleError(f"wrong results: {'; '.join(sentences)}")
