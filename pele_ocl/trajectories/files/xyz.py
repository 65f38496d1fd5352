"""Trajectories in extended XYZ: a number of atoms, a comment, and a line for each atom; then the next frame."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from ...common.errors import FormatError
from ...common.inputfile import read_file
from ...common.textfiles import number, whole
from .framefile import AtomChoice, FrameFile, Positions

_PROPERTIES = re.compile(r"Properties=(\S+)")
_PLAIN = "species:S:1:pos:R:3"  # columns of plain XYZ


class XyzFile(FrameFile):
    """All frames in memory; lengths in A."""

    def __init__(self, path: Path) -> None:
        lines = read_file(path).data.decode("latin-1").splitlines()
        while lines and not lines[-1].strip():
            lines.pop()
        n = whole(lines[0].strip()) if lines else None
        if not n:
            raise FormatError(f"{path}:1: a number of atoms is needed, with which each frame of XYZ begins")
        n_frames, rest = divmod(len(lines), n + 2)
        self._positions = np.array([_frame(path, lines, k * (n + 2), n) for k in range(n_frames)]).reshape(-1, n, 3)
        super().__init__(path, n, n_frames, is_partial=rest > 0)

    def read(self, frames: range, atoms: AtomChoice) -> Positions:
        found: Positions = self._positions[frames.start : frames.stop : frames.step, atoms]
        return found

    def close(self) -> None:
        """Nothing is open."""


def _frame(path: Path, lines: list[str], first: int, n: int) -> list[list[float]]:
    """Read the positions of the frame that begins with a line. Raises FormatError, with the line."""
    if whole(lines[first].strip()) != n:
        raise FormatError(f"{path}:{first + 1}: is no frame of {n:,} atoms, as the first one is")
    named = _PROPERTIES.search(lines[first + 1])
    fields = (named[1] if named else _PLAIN).split(":")
    widths = [whole(width) or 0 for width in fields[2::3]]
    if "pos" not in fields[::3]:
        raise FormatError(f"{path}:{first + 2}: its Properties have no pos, the positions of atoms")
    begin = sum(widths[: fields[::3].index("pos")])
    found = []
    for k in range(first + 2, first + 2 + n):
        values = [number(word) for word in lines[k].split()[begin : begin + 3]]
        known = [value for value in values if value is not None]
        if len(known) != 3:
            raise FormatError(f"{path}:{k + 1}: x, y and z of an atom are needed")
        found.append(known)
    return found
