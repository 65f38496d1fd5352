"""mmCIF files: the category atom_site, each conformation a model."""

from __future__ import annotations

from collections.abc import Sequence

import gemmi

from ...atoms import Floats
from ...chemistry import is_polymer
from .content import Content
from .layout import Layout

_COLUMNS = (
    "group_PDB", "id", "type_symbol", "label_atom_id", "label_alt_id", "label_comp_id", "label_asym_id",
    "label_entity_id", "label_seq_id", "pdbx_PDB_ins_code", "auth_seq_id", "auth_comp_id", "auth_asym_id",
    "auth_atom_id", "occupancy", "B_iso_or_equiv", "Cartn_x", "Cartn_y", "Cartn_z", "pdbx_PDB_model_num",
)  # fmt: skip


class MmcifLayout(Layout):
    """Atoms with the author's names (auth_*), which are those of the file that was read."""

    def __init__(self, content: Content) -> None:
        labels = content.labels
        columns = (
            labels.names, labels.elements, labels.residue_names, labels.residue_numbers, labels.insertion_codes,
            labels.chains, labels.residue_index, content.known_b_factors,
        )  # fmt: skip
        first = int(labels.residue_index[0]) if len(labels) else 0
        rows = enumerate(zip(*(column.tolist() for column in columns), strict=True), 1)
        self._rows = [_row(serial, row[:6], row[6] - first + 1, row[7]) for serial, row in rows]

    def head(self) -> bytes:
        return "".join(["data_model\nloop_\n", *(f"_atom_site.{name}\n" for name in _COLUMNS)]).encode()

    def conformation(self, number: int, positions: Floats | None) -> bytes:
        assert positions is not None
        rows = zip(self._rows, positions.tolist(), strict=True)
        return "".join(f"{row} {x:.4f} {y:.4f} {z:.4f} {number}\n" for row, (x, y, z) in rows).encode()

    def end(self) -> bytes:
        return b"#\n"


def _row(serial: int, texts: Sequence[object], place: int, b_factor: Sequence[float]) -> str:
    """An atom up to its positions. place : of its residue in the molecule, from 1"""
    name, element, residue, number, code, chain = map(str, texts)
    atom, comp, asym = (gemmi.cif.quote(text) if text else "." for text in (name, residue, chain))
    is_chain = is_polymer(residue)
    return " ".join(
        (
            "ATOM" if is_chain else "HETATM", str(serial), element, atom, ".", comp, asym, "1",
            str(place) if is_chain else ".", gemmi.cif.quote(code) if code else "?", number, comp, asym, atom,
            f"{b_factor[0]:.2f}", f"{b_factor[1]:.2f}",
        )
    )  # fmt: skip
