"""Reader of extended XYZ trajectories: number of atoms, comment, and one line per atom for each frame."""

from __future__ import annotations

import re
from pathlib import Path

import gemmi
import numpy as np

from ...atoms import Labels
from ...atoms.chemistry import element
from ...atoms.labels import labels_of_rows
from ...common.errors import FormatError
from ...common.inputfile import read_file
from ...common.textfiles import number, quoted, whole
from .framefile import AtomChoice, FrameFile, Positions

_PROPERTIES = re.compile(r"Properties=(\S+)")
_PLAIN = "species:S:1:pos:R:3"  # columns of standard XYZ


class XyzFile(FrameFile):
    """An XYZ file with all frames in memory; lengths in A. All frames must have the same species."""

    def __init__(self, path: Path) -> None:
        lines = read_file(path).data.decode("latin-1").splitlines()
        while lines and not lines[-1].strip():
            lines.pop()
        n = whole(lines[0].strip()) if lines else None
        if not n:
            raise FormatError(f"{path}:1: expected a number of atoms, the first line of each XYZ frame")
        n_frames, rest = divmod(len(lines), n + 2)
        frames = [_frame(path, lines, k * (n + 2), n) for k in range(n_frames)]
        self._species = frames[0][0] if frames else []
        for k, (species, _) in enumerate(frames):
            if species != self._species:
                i = next(i for i in range(n) if species[i] != self._species[i])
                raise FormatError(
                    f"{path}:{k * (n + 2) + i + 3}: {quoted(species[i])} is in the position of the first frame's "
                    f"{quoted(self._species[i])}; expected frames of the same atoms"
                )
        self._positions = np.array([positions for _, positions in frames]).reshape(-1, n, 3)
        super().__init__(path, n, n_frames, is_partial=rest > 0)

    @property
    def labels(self) -> Labels | None:
        """Labels with only the elements; None without species."""
        if not any(self._species):
            return None
        return labels_of_rows((symbol, symbol, "", 1, "", "", 0) for symbol in map(_symbol, self._species))

    def read(self, frames: range, atoms: AtomChoice) -> Positions:
        found: Positions = self._positions[frames.start : frames.stop : frames.step, atoms]
        return found

    def close(self) -> None:
        """Do nothing."""


def _symbol(word: str) -> str:
    """Return the element of a species, which may be a symbol, an atomic number, or a name that begins with a symbol."""
    return gemmi.Element(int(word)).name if word.isdecimal() and int(word) < 119 else element(word, "", word)


def _frame(path: Path, lines: list[str], first: int, n: int) -> tuple[list[str], list[list[float]]]:
    """Read the species and positions of the frame at a line. Species are "" if missing.

    Raises FormatError, with the line.
    """
    if whole(lines[first].strip()) != n:
        raise FormatError(f"{path}:{first + 1}: is not a frame of {n:,} atoms like the first")
    named = _PROPERTIES.search(lines[first + 1])
    fields = (named[1] if named else _PLAIN).split(":")
    widths = [whole(width) or 0 for width in fields[2::3]]
    if "pos" not in fields[::3]:
        raise FormatError(f"{path}:{first + 2}: its Properties have no pos, the positions of atoms")
    begins = {name: sum(widths[:k]) for k, name in enumerate(fields[::3])}
    begin, species, found = begins["pos"], list[str](), list[list[float]]()
    for k in range(first + 2, first + 2 + n):
        words = lines[k].split()
        values = [number(word) for word in words[begin : begin + 3]]
        known = [value for value in values if value is not None]
        if len(known) != 3:
            raise FormatError(f"{path}:{k + 1}: expected x, y and z of an atom")
        found.append(known)
        species.append(words[begins["species"]] if "species" in begins and begins["species"] < len(words) else "")
    return species, found
