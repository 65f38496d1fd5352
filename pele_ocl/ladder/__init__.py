"""Ladders of the thesis and of text books: every way to compute a quantity, from the plain loop to the engine.

The plans `Solvent`, `Nonbond` and `Potmap` offer the variants of the engine alone. Their ladders' classes run every
rung, also `naive`, which loses updates. The functions `solvent`, `nonbond` and `potmap` take them for the name of a
rung.

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

from ..common.arguments import is_among
from ..common.modules import lazy_names
from ..plan.selection import Offering

if TYPE_CHECKING:
    from .fft import FFT_ENGINE, FFT_VARIANTS, fft
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
    "fft",
    "ladder_for",
]


def ladder_for(plan: type[P], variant: object) -> type[P]:
    """Return the class that runs a rung; `plan`, the engine's class, where no rung of its ladder has this name."""
    ladder: type[P] = getattr(sys.modules[__name__], f"{plan.__name__}Ladder")
    return ladder if is_among(variant, ladder.variants) else plan


if not TYPE_CHECKING:  # names by the file that has them
    __getattr__ = lazy_names(
        __name__,
        {
            "fft": "FFT_ENGINE FFT_VARIANTS fft",
            "nonbond": "NONBOND NonbondLadder",
            "potmap": "POTMAP PotmapLadder",
            "rung": "Rung",
            "solvent": "SOLVENT SolventLadder",
        },
    )
