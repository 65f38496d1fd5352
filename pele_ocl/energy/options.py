"""Quantities that an energy is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Literal

from ..common.arguments import choice, flag, number
from ..common.errors import InputError

MOST_CUTOFF = 1e9  # A; its square is to fit float32


def require_near(cutoff: float | None) -> None:
    """Raise InputError for a cutoff, A, beyond the largest."""
    if isinstance(cutoff, Real) and cutoff > MOST_CUTOFF:  # others are refused by Options
        raise InputError(f"the cutoff is {cutoff:g} A; expected a distance of at most {MOST_CUTOFF:g} A")


@dataclass(frozen=True)
class Options:
    """Options that kernels are built for.

    gradient : whether it is wanted; chain : whether Born radii follow the positions in it
    per_atom : whether energies of single atoms are wanted
    cutoff : of the pair terms, A; None for all pairs
    one_four : "scale" or "exclude" 1-4 pairs
    rebuild_sites : whether virtual sites are placed first, and their gradients passed on to their parents

    Raises InputError for unknown values.
    """

    gradient: bool
    chain: bool
    per_atom: bool
    cutoff: float | None
    one_four: Literal["scale", "exclude"]
    rebuild_sites: bool = False

    def __post_init__(self) -> None:
        for name in ("gradient", "chain", "per_atom", "rebuild_sites"):
            flag(name, getattr(self, name))
        choice("one_four", self.one_four, ("scale", "exclude"))
        if self.cutoff is not None:
            number("cutoff", self.cutoff, "a positive number of Angstrom", above=0, most=MOST_CUTOFF)
