"""Options of an energy evaluation."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Literal

from ..common.arguments import choice, flag, number
from ..common.errors import InputError

MOST_CUTOFF = 1e9  # A; its square must fit float32


def require_near(cutoff: float | None) -> None:
    """Raise InputError for a cutoff, A, that is too large."""
    if isinstance(cutoff, Real) and cutoff > MOST_CUTOFF:  # Options checks the others
        raise InputError(f"the cutoff is {cutoff:g} A; expected a distance of at most {MOST_CUTOFF:g} A")


@dataclass(frozen=True)
class Options:
    """Options that kernels are built for. Raises InputError for unknown values.

    gradient : whether to compute the gradient; chain : whether it includes derivatives of the Born radii
    per_atom : whether to compute energies of single atoms
    cutoff : of the pair terms, A; None for all pairs
    one_four : "scale" or "exclude" 1-4 pairs
    rebuild_sites : whether to place virtual sites first, and distribute their gradients to their parents
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
