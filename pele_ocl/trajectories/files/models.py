"""Structure files with several models as trajectories. PDB files are read in pieces, others as a whole."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...atoms import Floats, Labels, Structure
from ...common.errors import FormatError
from ...common.inputfile import InputFile, read_file
from ...formats.cells import cryst1_cell, read_cell
from ...formats.registry import is_pdb, structure_format
from .decimals import WIDTH, decimals
from .framefile import AtomChoice, FrameFile, Positions

_MODEL, _CRYST1 = b"\nMODEL", b"\nCRYST1"
_BLOCK = 1 << 24  # bytes
_NAMES = [*range(6), *range(12, 27)]  # columns of the record name and of the atom's identity
_PLACES = 30 + np.arange(3 * WIDTH).reshape(3, WIDTH)
_ATOM = re.compile(rb"^(ATOM|HETATM)", re.MULTILINE | re.IGNORECASE)


class WholeFile(FrameFile):
    """A structure file with all models in memory."""

    def __init__(self, path: Path) -> None:
        self._positions = _conformations(read_file(path))
        super().__init__(path, self._positions.shape[1], self._positions.shape[0])
        self._cell = read_cell(path)

    @property
    def labels(self) -> Labels | None:
        return _structure_of(read_file(self.path)).labels

    def read(self, frames: range, atoms: AtomChoice) -> Positions:
        positions: Positions = self._positions[frames.start : frames.stop : frames.step, atoms]
        self.cells = None if self._cell is None else np.repeat(self._cell[np.newaxis], len(frames), axis=0)
        return positions

    def close(self) -> None:
        """Do nothing."""


class PdbFile(FrameFile):
    """A PDB file with MODEL records, read model by model.

    Models with the same layout as the first are parsed together, others by the structure reader.
    """

    def __init__(self, path: Path, starts: list[int], cells: list[int]) -> None:
        """Open a file. starts, cells : byte offsets of the MODEL and CRYST1 records"""
        self._cell_starts = np.array(cells, np.int64)
        self._stream = open(path, "rb")
        try:
            self._learn(path, starts)
        except BaseException:
            self._stream.close()
            raise

    def _learn(self, path: Path, starts: list[int]) -> None:
        """Determine the positions of the fields from the first model."""
        self._starts = [*starts, path.stat().st_size]
        self._first = self._bytes(0, self._starts[1])
        structure = _structure_of(InputFile(path, self._first))
        self._labels = structure.labels
        ends = np.flatnonzero(np.frombuffer(self._first, np.uint8) == ord("\n"))
        lines = structure.lines.astype(np.intp) - 1
        head = _after_model(self._first[starts[0] :]) + starts[0]
        last = int(ends[lines.max()]) + 1 if lines.max() < len(ends) else len(self._first)
        self._span = last - head
        begins = np.concatenate([[0], ends + 1])[lines] - head
        self._ends = ends[(ends >= head) & (ends < last)] - head
        self._names: NDArray[np.intp] = begins[:, np.newaxis] + np.array(_NAMES)
        self._places: NDArray[np.intp] = begins[:, np.newaxis, np.newaxis] + _PLACES
        row = np.frombuffer(self._first, np.uint8)[np.newaxis, head:last]
        self._identity = np.take(row, self._names, axis=1, mode="clip")
        positions, sound = decimals(np.take(row, self._places, axis=1, mode="clip"))
        self._is_plain = sound and bool((positions[0] == structure.positions).all())
        super().__init__(path, len(lines), len(starts))

    def read(self, frames: range, atoms: AtomChoice) -> Positions:
        texts = [self._bytes(self._starts[k], self._starts[k + 1]) for k in frames]
        plain = self._read_plain(texts) if self._is_plain else None
        positions: Positions = (self._read_any(texts, frames) if plain is None else plain)[:, atoms]
        if len(self._cell_starts):
            self.cells = np.stack([self._cell(k, text) for k, text in zip(frames, texts, strict=True)])
        return positions

    def _cell(self, model: int, text: bytes) -> Floats:
        """Read the cell of the CRYST1 record in a model, or of the last one before it; NaN if there is none."""
        begin, end = self._starts[model], self._starts[model + 1]
        own = int(np.searchsorted(self._cell_starts, end)) - 1
        if own >= 0 and self._cell_starts[own] > begin:
            head = _ATOM.search(text)
            if head is None or self._cell_starts[own] - begin > head.start():  # part of the next model
                own = int(np.searchsorted(self._cell_starts, begin)) - 1
        if own < 0:
            return np.full((3, 3), np.nan)
        start = int(self._cell_starts[own])
        return cryst1_cell(self._bytes(start, start + 80))

    @property
    def labels(self) -> Labels | None:
        return self._labels

    def close(self) -> None:
        self._stream.close()

    def _bytes(self, start: int, end: int) -> bytes:
        self._stream.seek(start)
        return self._stream.read(end - start)

    def _read_plain(self, texts: list[bytes]) -> Floats | None:
        """Parse models with the same layout as the first; None if one of them differs."""
        heads = [_after_model(text) for text in texts]
        for text, head in zip(texts, heads, strict=True):
            if len(text) < head + self._span or _ATOM.search(text, head + self._span):
                return None
        joined = b"".join(text[head : head + self._span] for text, head in zip(texts, heads, strict=True))
        rows = np.frombuffer(joined, np.uint8).reshape(len(texts), self._span)
        if (rows[:, self._ends] != ord("\n")).any() or (np.take(rows, self._names, axis=1) != self._identity).any():
            return None
        positions, sound = decimals(np.take(rows, self._places, axis=1))
        return positions if sound else None

    def _read_any(self, texts: list[bytes], frames: range) -> Floats:
        """Parse models with the structure reader, which reports errors."""
        positions = _conformations(InputFile(self.path, b"".join([self._first, *texts])))
        if len(positions) != len(texts) + 1:
            raise FormatError(f"{self.path}: one of the models {frames.start + 1} to {frames.stop} has no atoms")
        found: Floats = positions[1:]
        return found


def _conformations(file: InputFile) -> Floats:
    """Read the positions (m, n, 3) A of all models, without imaging."""
    read = structure_format(file.path).conformations
    if read is None:
        what = f"{file}: models are read together from PDB and mmCIF files"
        raise FormatError(f"{what}; choose one by `model`", code="no_frames", what=what)
    return read(file, None)[1]


def _structure_of(file: InputFile) -> Structure:
    """Read the first model."""
    structure = structure_format(file.path).read(file, None)
    assert isinstance(structure, Structure)
    return structure


def _after_model(text: bytes) -> int:
    """Return the offset after the MODEL record at the beginning of a text."""
    return text.find(b"\n") + 1


def open_models(path: Path) -> FrameFile:
    """Open a structure file, with one frame per model."""
    if not is_pdb(path):
        return WholeFile(path)
    starts = _starts(path, _MODEL)
    return PdbFile(path, starts, _starts(path, _CRYST1)) if len(starts) > 1 else WholeFile(path)


def _starts(path: Path, record: bytes) -> list[int]:
    """Return the byte offsets of records in a file. record : a line end and the record name"""
    starts: list[int] = []
    with open(path, "rb") as stream:
        place, rest = -1, b"\n"  # treat the first line like the others
        while data := stream.read(_BLOCK):
            text = rest + data
            at = text.find(record)
            while at >= 0:
                starts.append(place + at + 1)
                at = text.find(record, at + 1)
            rest = text[1 - len(record) :]
            place += len(text) - len(rest)
    return starts
