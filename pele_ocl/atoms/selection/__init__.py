"""Choice of atoms by a text: `protein and not resname NAP`, in words of MDAnalysis and VMD, or an AMBER mask.

docs/selection.md lists the words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...common.modules import lazy_names

if TYPE_CHECKING:  # the same names as below, for checkers and editors
    from .choice import NO_ATOMS, Selection
    from .kinds import KINDS, Composition, residue_kinds
    from .words import SelectableAtoms

__all__ = ["KINDS", "NO_ATOMS", "Composition", "SelectableAtoms", "Selection", "residue_kinds"]

if not TYPE_CHECKING:  # names by the file that has them
    __getattr__ = lazy_names(
        __name__,
        {"choice": "NO_ATOMS Selection", "kinds": "KINDS Composition residue_kinds", "words": "SelectableAtoms"},
    )
