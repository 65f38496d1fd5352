"""Ladders of algorithms from the thesis and from textbooks, from a plain loop to the variants of the engine.

The plans `Solvent`, `Nonbond` and `Potmap` have only the variants of the engine. Their subclasses here run every rung,
including `naive`, which loses updates. The functions `solvent`, `nonbond` and `potmap` use them if `variant` is a rung.

>>> import pele_ocl
>>> atoms = pele_ocl.read("data/structures/trialanine.pdb")
>>> list(pele_ocl.ladder.SOLVENT)
['sequential', 'inner', 'outer', 'pair', 'tiled', 'tree']
>>> pele_ocl.ladder.SolventLadder(atoms, variant="outer").evaluate().born_radii.shape
(33,)
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TypeVar

from ..common.modules import lazy_names
from ..plan.selection import Offering

if TYPE_CHECKING:
    from .fft import FFT_ENGINE, FFT_VARIANTS
    from .nonbond import NONBOND, NonbondLadder
    from .potmap import POTMAP, PotmapLadder
    from .rung import Rung
    from .solvent import SOLVENT, SolventLadder

P = TypeVar("P", bound=Offering)

__all__ = [
    "FFT_ENGINE",
    "FFT_VARIANTS",
    "NONBOND",
    "POTMAP",
    "SOLVENT",
    "NonbondLadder",
    "PotmapLadder",
    "Rung",
    "SolventLadder",
    "ladder_of",
]


def ladder_of(plan: type[P]) -> type[P]:
    """Return the subclass that runs the rungs of a plan class."""
    ladder: type[P] = getattr(sys.modules[__name__], f"{plan.__name__}Ladder")
    return ladder


if not TYPE_CHECKING:  # names by module
    __getattr__ = lazy_names(
        __name__,
        {
            "fft": "FFT_ENGINE FFT_VARIANTS",
            "nonbond": "NONBOND NonbondLadder",
            "potmap": "POTMAP PotmapLadder",
            "rung": "Rung",
            "solvent": "SOLVENT SolventLadder",
        },
    )
