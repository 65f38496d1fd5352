"""COLVAR files, as PLUMED writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ..atoms import Floats
from ..common.writing import replacing


def write_colvar(path: Path, columns: Mapping[str, Sequence[float] | Floats]) -> None:
    """Write a COLVAR file as PLUMED does: a line of fields, then numbers. columns : by field, "time" (ps) first

    Raises FormatError where it cannot be written.
    """
    lines = [f"#! FIELDS {' '.join(columns)}\n"]
    lines += [f" {' '.join(f'{value:.6f}' for value in row)}\n" for row in zip(*columns.values(), strict=True)]
    with replacing(path) as temporary:
        Path(temporary).write_text("".join(lines), encoding="utf-8")
