"""Reports as PELE writes them: a line of names, then a row for the initial state and each accepted step."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from ..common.errors import FormatError
from ..common.writing import appending, replacing

HEADS = ("#Task", "Step", "numberOfAcceptedPeleSteps", "currentEnergy")
_BETWEEN = " " * 4


def numbered(path: str | Path, number: int) -> Path:
    """Give the path of an explorer's own file: `trajectory.pdb` becomes `trajectory_3.pdb`."""
    whole = Path(path)
    return whole.with_name(f"{whole.stem}_{number}{whole.suffix}")


def line_of(values: Sequence[str]) -> str:
    """Write columns as PELE does, each with four blanks after it."""
    return "".join(f"{value}{_BETWEEN}" for value in values) + "\n"


def written(value: float) -> str:
    """Write a number with six digits."""
    return f"{value:.6g}"


def report_head(columns: Sequence[str]) -> str:
    """Write the first line. columns : of metrics"""
    return line_of([*HEADS, *columns])


def report_row(task: int, step: int, accepted: int, energy: float, values: Sequence[float]) -> str:
    """Write the row of an accepted step. accepted : steps so far; energy : kcal/mol; values : of metrics"""
    return line_of([str(task), str(step), str(accepted), *(written(value) for value in (energy, *values))])


class AppendedFile:
    """File of lines that are appended, and that an interrupted run goes on with.

    path : of the file; size : its bytes
    """

    def __init__(self, path: Path, head: str, size: int | None = None) -> None:
        """size : bytes that an earlier run left, None for a new file

        Raises FormatError where the file cannot be written, and where it is not what the earlier run left.
        """
        self.path = path
        begin = head.encode()
        if size is None:
            with replacing(path) as temporary:
                temporary.write_bytes(begin)
        self.size = len(begin) if size is None else size
        try:
            self._stream = open(path, "r+b", buffering=0)
        except OSError as error:
            raise FormatError(f"{path}: cannot be written: {os.strerror(error.errno or 0)}") from None
        if self._stream.read(len(begin)) != begin or self._stream.seek(0, 2) < self.size:
            self._stream.close()
            raise FormatError(f"{path}: is not what the interrupted run left; start anew, without `resume`")
        self._stream.truncate(self.size)

    def __enter__(self) -> AppendedFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stream.close()

    def append(self, text: str) -> None:
        """Write at the end. Raises FormatError where that fails, as on a full disk."""
        data = text.encode()
        with appending(self.path):
            self._stream.seek(self.size)
            left = memoryview(data)
            while left:
                left = left[self._stream.write(left) :]
        self.size += len(data)
