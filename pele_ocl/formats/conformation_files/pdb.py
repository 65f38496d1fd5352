"""PDB files: MODEL records of all conformations, or none where there is one."""

from __future__ import annotations

import numpy as np

from ...atoms import Floats
from ...errors import FormatError
from ..pdb_writing import atom_lines
from .content import Content
from .layout import Layout

_PLACE = slice(30, 54)  # columns of x, y and z


class PdbLayout(Layout):
    """Atoms with their chains, numbers and insertion codes, and the B-factors where they are known."""

    def __init__(self, content: Content) -> None:
        labels, n_atoms = content.labels, len(content.atoms)
        self._n, self._source = content.n, content.source
        lines = list(atom_lines(labels, np.zeros((n_atoms, 3)), content.source, content.known_b_factors))
        self._lines, self._is_atom = lines, [not line.startswith("TER") for line in lines]

    def head(self) -> bytes:
        return b""

    def conformation(self, number: int, positions: Floats | None) -> bytes:
        assert positions is not None
        if not ((positions > -999.9995) & (positions < 9999.9995)).all():
            raise FormatError(f"{self._source}: a position does not fit into a PDB file; write .cif, .h5 or .nc")
        places = iter(positions.tolist())
        lines = [
            f"{line[: _PLACE.start]}{'{:8.3f}{:8.3f}{:8.3f}'.format(*next(places))}{line[_PLACE.stop :]}"
            if is_atom
            else line
            for line, is_atom in zip(self._lines, self._is_atom, strict=True)
        ]
        before, after = (f"MODEL {number:8d}\n", "ENDMDL\n") if self._n > 1 else ("", "")
        return "".join([before, *lines, after]).encode("latin-1")

    def end(self) -> bytes:
        return b"END\n"
