"""Parsed selections."""

from __future__ import annotations

from typing import Any

from ...common.errors import InputError
from ...common.indices import selection_text
from ..labels import Labels
from .masks import MaskParser, is_mask
from .parser import Parser, whole_residues
from .words import ALONE, NAMED, Bools, SelectableAtoms, clipped

NO_ATOMS = "no_atoms"  # code of the error about an empty selection


class Selection:
    """A selection, parsed once and applicable to any number of molecules.

    text : a selection (docs/selection.md), indices, a boolean mask, or an MDAnalysis AtomGroup
    n_atoms : required number of atoms of the molecules; by default that of the mask or AtomGroup, otherwise any
    """

    def __init__(self, text: Any, n_atoms: int | None = None) -> None:
        """Raise InputError for an invalid selection, with the position of the error."""
        self.text = selection_text("the selection", text)
        self.n_atoms = getattr(self.text, "n_atoms", None) if n_atoms is None else n_atoms
        self._parser = _parsed(self.text)
        self._words = self._parser.words

    def __repr__(self) -> str:
        return f"Selection({self.text!r})"

    def __reduce__(self) -> tuple[type[Selection], tuple[str, int | None]]:
        """Pickle the text, which is parsed again when unpickled."""
        return Selection, (self.text, self.n_atoms)

    @property
    def needs_types(self) -> bool:
        """True if the selection depends on atom types, which require a force field."""
        return "type" in self._words

    @property
    def needs_names(self) -> bool:
        """True if the selection depends on labels, not only on indices."""
        return bool(self._words & ({*ALONE, *NAMED, "resid", "resnum", "byres"} - {"all"}))

    def mask(self, atoms: SelectableAtoms) -> Bools:
        """Return a mask (n,) of the selected atoms. Raises the errors of `pele_ocl.selection`."""
        return self.mask_and_unknown(atoms)[0]

    def mask_and_unknown(self, atoms: SelectableAtoms) -> tuple[Bools, tuple[str, ...]]:
        """Return the mask, and a note for each name in the selection that does not occur in the molecule."""
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
            raise InputError(f"the selection {clipped(self.text)!r} selects no atoms{reason}", code=NO_ATOMS)
        return mask, tuple(parser.unknown)

    def whole_residues(self, labels: Labels, mask: Bools) -> Bools:
        """Extend a mask (n,) to complete residues."""
        return whole_residues(SelectableAtoms(len(labels), labels), mask)


def _parsed(text: str) -> Parser | MaskParser:
    """Parse a selection, or an AMBER mask."""
    return MaskParser(text) if is_mask(text) else Parser(text)
