"""Atom selections such as `protein and not resname NAP`, with the keywords of MDAnalysis and VMD, and AMBER masks.

docs/selection.md describes the language.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...common.modules import lazy_names

if TYPE_CHECKING:  # the names below, for type checkers and editors
    from .choice import NO_ATOMS, Selection
    from .kinds import KINDS, Composition, residue_kinds
    from .words import SelectableAtoms

__all__ = ["KINDS", "NO_ATOMS", "Composition", "SelectableAtoms", "Selection", "residue_kinds"]

if not TYPE_CHECKING:  # names of each module
    __getattr__ = lazy_names(
        __name__,
        {"choice": "NO_ATOMS Selection", "kinds": "KINDS Composition residue_kinds", "words": "SelectableAtoms"},
    )
