"""HDF5: `positions` (m, n, 3) A, the names of atoms as datasets, and attributes."""

from __future__ import annotations

import io
import tempfile
from dataclasses import fields
from functools import cached_property
from pathlib import Path

import numpy as np

from ...atoms import Floats, Labels
from ..hdf5_writing import placed_dataset, text_array, text_type, write_attributes
from .content import Content
from .layout import Layout

_UNIT = "angstrom"
_BLOCK = 1 << 22  # numbers
_CONTENTS = 1 << 16  # bytes of all tables of contents, which so stand before the positions


class Hdf5Layout(Layout):
    """All but the positions is written first; those of conformations that are not done, or failed, are NaN."""

    has_gaps = True

    def __init__(self, content: Content) -> None:
        self._content = content
        self._shape = content.n, len(content.atoms), 3
        self._dtype = np.dtype(content.precision).newbyteorder("<")

    def head(self) -> bytes:
        return self._head

    def conformation(self, number: int, positions: Floats | None) -> bytes:
        values = np.full(self._shape[1:], np.nan) if positions is None else positions
        return values.astype(self._dtype).tobytes()

    def begin(self, stream: io.FileIO) -> None:
        stream.seek(len(self._head))
        left = int(np.prod(self._shape))
        while left:
            stream.write(np.full(min(left, _BLOCK), np.nan, self._dtype).tobytes())
            left -= min(left, _BLOCK)

    def cut(self, stream: io.FileIO, size: int) -> None:
        """Nothing: the file has its length from the start."""

    @cached_property
    def _head(self) -> bytes:
        """The file up to its positions, which stand last and are never written here."""
        import h5py

        content, labels = self._content, self._content.atoms.labels
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "head.h5"
            with h5py.File(path, "w", libver=("v108", "latest"), track_order=True, meta_block_size=_CONTENTS) as file:
                write_attributes(file, content.attributes)
                for f in fields(Labels) if labels is not None else ():
                    values = getattr(labels, f.name)
                    if values.dtype.kind == "U":
                        file.create_dataset(f.name, data=text_array(values), dtype=text_type())
                    else:
                        file.create_dataset(f.name, data=values)
                dataset = placed_dataset(file, "positions", self._shape, self._dtype)
                # Of a fixed length: the heap of other texts may grow, and would come to stand behind the positions.
                dataset.attrs.create("unit", _UNIT, dtype=h5py.string_dtype("utf-8", len(_UNIT)))
                begin = int(dataset.id.get_offset())
            assert path.stat().st_size == begin + int(np.prod(self._shape)) * self._dtype.itemsize
            with open(path, "rb") as stream:
                return stream.read(begin)
