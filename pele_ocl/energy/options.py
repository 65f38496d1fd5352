"""The quantities that an energy is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..errors import InputError


@dataclass(frozen=True)
class Options:
    """The options that kernels are built for.

    gradient : whether it is wanted; chain : whether Born radii follow the positions in it
    per_atom : whether energies of single atoms are wanted
    cutoff : of the pair terms, A; None for all pairs
    one_four : "scale" or "exclude" 1-4 pairs

    Raises InputError for values that do not exist.
    """

    gradient: bool
    chain: bool
    per_atom: bool
    cutoff: float | None
    one_four: Literal["scale", "exclude"]

    def __post_init__(self) -> None:
        if self.one_four not in ("scale", "exclude"):
            raise InputError(f"one_four is {self.one_four!r}; choose 'scale' or 'exclude'")
        cutoff = self.cutoff
        if cutoff is not None and not (isinstance(cutoff, int | float | np.number) and 0 < cutoff < np.inf):
            raise InputError(f"cutoff is {cutoff!r}; a positive number of Angstrom is needed")
