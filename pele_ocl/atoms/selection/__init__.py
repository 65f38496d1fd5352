"""Choice of atoms by a text: `protein and not resname NAP`, in words of MDAnalysis and VMD, or an AMBER mask.

docs/selection.md lists the words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from ...common import arguments
from ...common.errors import InputError
from ...common.lazy import lazy_names
from ..atoms import Atoms
from ..labels import Labels
from .kinds import KINDS, Composition, residue_kinds
from .masks import MaskParser, is_mask
from .parser import Parser, whole_residues
from .words import ALONE, NAMED, Bools, SelectableAtoms, clipped

__all__ = ["KINDS", "Composition", "SelectableAtoms", "Selection", "residue_kinds", "selection"]

if not TYPE_CHECKING:  # names for tests, by the file that has them
    __getattr__ = lazy_names(
        __name__,
        {
            "nearby": "near",
            "parser": "KNOWN",
        },
    )


class Selection:
    """A selection that was read once and is applied to as many molecules as one likes."""

    def __init__(self, text: str) -> None:
        """Raise InputError, with the place of the word that is wrong, for a text that is no selection."""
        self.text = arguments.text("the selection", text)
        self._parser = _parsed(text)
        self._words = self._parser.words

    def __repr__(self) -> str:
        return f"Selection({self.text!r})"

    def __reduce__(self) -> tuple[type[Selection], tuple[str]]:
        """Pickle the text, which is parsed again elsewhere."""
        return Selection, (self.text,)

    @property
    def needs_types(self) -> bool:
        """True if it chooses by atom types, which force fields give."""
        return "type" in self._words

    @property
    def needs_names(self) -> bool:
        """True if it chooses by names of atoms or residues, not by index alone."""
        return bool(self._words & ({*ALONE, *NAMED, "resid", "resnum", "byres"} - {"all"}))

    def mask(self, atoms: Atoms | Labels, positions: ArrayLike | None = None) -> Bools:
        """(n,) True for each atom that is chosen; parameters and errors as in `selection`."""
        return self.mask_and_unknown(atoms, positions)[0]

    def mask_and_unknown(
        self, atoms: Atoms | Labels, positions: ArrayLike | None = None
    ) -> tuple[Bools, tuple[str, ...]]:
        """Return the mask, and a sentence for each name in the text that no atom has."""
        return self._chosen(_described(atoms, positions))

    def mask_of(self, described: SelectableAtoms) -> Bools:
        """(n,) True for each atom that is chosen, of atoms that are described already; errors as in `selection`."""
        return self._chosen(described)[0]

    def _chosen(self, described: SelectableAtoms) -> tuple[Bools, tuple[str, ...]]:
        parser = self._parser
        parser.empty.clear()
        parser.unknown.clear()
        mask = parser.choice(described)
        if not mask.any():
            reason = "".join(f"; {sentence}" for sentence in parser.empty[:1])
            raise InputError(f"the selection {clipped(self.text)!r} takes no atom{reason}")
        return mask, tuple(parser.unknown)

    def whole_residues(self, labels: Labels, mask: Bools) -> Bools:
        """Extend a mask (n,) to all atoms of each residue with a chosen atom."""
        return whole_residues(SelectableAtoms(len(labels), labels), mask)


def _parsed(text: str) -> Parser | MaskParser:
    """A reading of a text, as a mask of AMBER where it begins like one."""
    return MaskParser(text) if is_mask(text) else Parser(text)


def selection(atoms: Atoms | Labels, text: str, positions: ArrayLike | None = None) -> Bools:
    """Mark the atoms that a text chooses, (n,) True for each.

    atoms : Atoms, or the Labels of n atoms
    text : `protein and not resname NAP`, say, or a mask of AMBER, `:1-50@CA`; docs/selection.md lists the words
    positions : (n, 3) A, for distances; by default the Atoms' own

    Raises InputError for a text that is no selection, with the place of the wrong word, or chooses no atom. If it names
    labels, types or positions that the atoms lack, InputError says so.
    """
    return Selection(text).mask(atoms, positions)


def _described(atoms: Atoms | Labels, positions: ArrayLike | None) -> SelectableAtoms:
    """Describe the atoms as the words see them."""
    if not isinstance(atoms, Labels):
        arguments.instance("atoms", atoms, Atoms, "Atoms, or Labels,")
    there = None if positions is None else arguments.positions_of(positions)
    if there is not None and len(there) != len(atoms):
        raise InputError(f"positions have shape {there.shape}; ({len(atoms)}, 3) is needed")
    if isinstance(atoms, Labels):
        return SelectableAtoms(len(atoms), atoms, there)
    return SelectableAtoms(len(atoms), atoms.labels, atoms.positions if there is None else there, atoms.types)
