"""Wrong variants in timing tables: which errors are beyond their bounds, and what is said of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from ..common.errors import PeleError

ROOM = 10  # on other devices and structures than those that the tests' bounds were found on


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
