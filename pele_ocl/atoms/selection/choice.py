"""Selection that was read from a text."""

from __future__ import annotations

from typing import Any

from ...common.errors import InputError
from ...common.indices import selection_text
from ..labels import Labels
from .masks import MaskParser, is_mask
from .parser import Parser, whole_residues
from .words import ALONE, NAMED, Bools, SelectableAtoms, clipped

NO_ATOMS = "no_atoms"  # code of the error about a selection that takes none


class Selection:
    """A selection that was read once and is applied to any number of molecules.

    text : a selection (docs/selection.md); or indices, a mask, or a group of MDAnalysis, which become one
    n_atoms : of the molecules that it is about; by default any, or that of a mask or a universe
    """

    def __init__(self, text: Any, n_atoms: int | None = None) -> None:
        """Raise InputError, with the place of the word that is wrong, for a text that is no selection."""
        self.text = selection_text("the selection", text)
        self.n_atoms = getattr(self.text, "n_atoms", None) if n_atoms is None else n_atoms
        self._parser = _parsed(self.text)
        self._words = self._parser.words

    def __repr__(self) -> str:
        return f"Selection({self.text!r})"

    def __reduce__(self) -> tuple[type[Selection], tuple[str, int | None]]:
        """Pickle the text, which is parsed again elsewhere."""
        return Selection, (self.text, self.n_atoms)

    @property
    def needs_types(self) -> bool:
        """True if it chooses by atom types, which force fields give."""
        return "type" in self._words

    @property
    def needs_names(self) -> bool:
        """True if it chooses by names of atoms or residues, not by index alone."""
        return bool(self._words & ({*ALONE, *NAMED, "resid", "resnum", "byres"} - {"all"}))

    def mask(self, atoms: SelectableAtoms) -> Bools:
        """(n,) True for each atom that is chosen; errors as in `pele_ocl.selection`."""
        return self.mask_and_unknown(atoms)[0]

    def mask_and_unknown(self, atoms: SelectableAtoms) -> tuple[Bools, tuple[str, ...]]:
        """Return the mask, and a sentence for each name in the text that no atom has."""
        if self.n_atoms not in (None, atoms.n_atoms):
            raise InputError(
                f"the selection is of a molecule of {self.n_atoms:,} atoms, and this one has {atoms.n_atoms:,}"
            )
        parser = self._parser
        parser.empty.clear()
        parser.unknown.clear()
        mask = parser.choice(atoms)
        if not mask.any():
            reason = "".join(f"; {sentence}" for sentence in parser.empty[:1])
            raise InputError(f"the selection {clipped(self.text)!r} takes no atom{reason}", code=NO_ATOMS)
        return mask, tuple(parser.unknown)

    def whole_residues(self, labels: Labels, mask: Bools) -> Bools:
        """Extend a mask (n,) to all atoms of each residue with a chosen atom."""
        return whole_residues(SelectableAtoms(len(labels), labels), mask)


def _parsed(text: str) -> Parser | MaskParser:
    """A reading of a text, as a mask of AMBER where it begins like one."""
    return MaskParser(text) if is_mask(text) else Parser(text)
