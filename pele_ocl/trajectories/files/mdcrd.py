"""Reader of AMBER's text trajectories (mdcrd).

A title is followed by the frames, with ten numbers per line in the format F8.3, and optionally a line with the box
after each frame. The number of atoms is not in the file. MDTraj writes blanks between the numbers of the box.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ...atoms.corresponding import OTHER_ATOMS
from ...common.errors import FormatError
from ...contract import cells_of
from .decimals import WIDTH, decimals
from .framefile import AtomChoice, Positions, RecordFile

_A_LINE = 10
_BLANK_BOX = 3 * WIDTH + 2


class MdcrdFile(RecordFile):
    """A text trajectory, whose boxes have no angles."""

    def __init__(self, path: Path, n_atoms: int) -> None:
        """Open a file with frames of `n_atoms` atoms. Raises FormatError if the first frame does not match."""
        full, rest = divmod(3 * n_atoms, _A_LINE)
        widths = [_A_LINE * WIDTH] * full + ([rest * WIDTH] if rest else [])
        with open(path, "rb") as stream:
            title = stream.readline(4096)
            lines = [stream.readline(4096) for _ in widths]
            after = stream.readline(4096)
        self._end = len(title) - len(title.rstrip(b"\r\n"))
        found = [len(line.rstrip(b"\r\n")) for line in lines]
        if found != widths or not self._end:
            raise _why_not(path, n_atoms, full + bool(rest))
        box = len(after.rstrip(b"\r\n"))
        if box != _BLANK_BOX and not (box == 3 * WIDTH and n_atoms > 1):
            box = 0
        if not rest and not self._may_be(path, full, bool(box)):
            raise _why_not(path, n_atoms, full)
        length = sum(widths) + len(widths) * self._end + (box + self._end if box else 0)
        super().__init__(path, n_atoms, len(title), length)
        self._full, self._rest, self._has_box = full, rest * WIDTH, box
        self._ends = np.cumsum(np.array(widths) + self._end) - 1

    @staticmethod
    def _may_be(path: Path, full: int, has_box: bool) -> bool:
        """Return whether a file has no short line, or the first one is the box after the `full` lines of a frame."""
        with open(path, "rb") as stream:
            stream.readline()
            for k, line in enumerate(stream):
                if not line.endswith(b"\n"):
                    return True  # truncated file
                if len(line.rstrip(b"\r\n")) != _A_LINE * WIDTH:
                    return has_box and k == full
                if k > 10**6:
                    break
        return True

    def read(self, frames: range, atoms: AtomChoice) -> Positions:
        raw = self.raw(frames)
        wrong = np.flatnonzero((raw[:, self._ends] != ord("\n")).any(axis=1))
        if len(wrong):
            raise FormatError(
                f"{self.path}: the lines of frame {frames[int(wrong[0])]} are not those of {self.n_atoms:,} atoms; "
                "copy the file again, or give the matching structure"
            )
        line = _A_LINE * WIDTH + self._end
        lines = raw[:, : self._full * line].reshape(len(raw), self._full, line)[:, :, : _A_LINE * WIDTH]
        rest = raw[:, self._full * line : self._full * line + self._rest]
        fields = np.concatenate([lines.reshape(len(raw), -1), rest], axis=1).reshape(len(raw), self.n_atoms, 3, WIDTH)
        if self._has_box:
            box = raw[:, -(3 * WIDTH + self._end) :][:, : 3 * WIDTH].reshape(len(raw), 3, WIDTH)
            self.cells = cells_of(decimals(box)[0], [self.angles] * len(raw))
        return decimals(fields[:, atoms])[0]


def _why_not(path: Path, n_atoms: int, n_lines: int) -> FormatError:
    """Create the error about a first frame that does not match, with its apparent number of atoms."""
    lengths = []
    with open(path, "rb") as stream:
        stream.readline()
        for line in stream:
            lengths.append(len(line.rstrip(b"\r\n")))
            if lengths[-1] != _A_LINE * WIDTH or len(lengths) > 10**6:
                break
    numbers, odd = divmod(sum(lengths), WIDTH)
    is_box = lengths[-1] in (3 * WIDTH, _BLANK_BOX) if lengths else False  # or the end of a frame
    if not odd and numbers % 3 == 0 and len(lengths) < 10**6 and not (is_box and numbers % _A_LINE == 3):
        what = f"{path}: its frames seem to have {numbers // 3:,} atoms, the structure {n_atoms:,}"
        advice = "select those of the structure with `select`, with `topology`"
        return FormatError(f"{what}; {advice}", code=OTHER_ATOMS, what=what)
    return FormatError(
        f"{path}: the first {n_lines:,} lines after the title are not those of {n_atoms:,} atoms in F8.3"
    )
