"""Interface of files that results are appended to, and earlier results in such a file."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from ...common.errors import FormatError
from ...formats.hdf5 import encodable
from ..streaming import FURTHER_COLUMNS, FrameResults

Settings = Mapping[str, str]  # by which results are made, as texts
UNIT = "kcal/mol"  # of every column of real numbers but those of FURTHER_COLUMNS


class Recorder(ABC):
    """A file of results, one row a frame, that keeps its rows whenever its program ends.

    frames : of all rows, when it is complete
    done : rows that it has
    """

    def __init__(self, path: Path, settings: Settings, frames: range) -> None:
        self.path, self.frames = path, frames
        self.settings = {name: encodable(value) for name, value in settings.items()}
        self.done = 0

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @abstractmethod
    def settings_there(self) -> Settings:
        """Read the settings of the file as it is. Raises FormatError if there is none, or another file."""

    @abstractmethod
    def resume(self) -> FrameResults | None:
        """Continue at the end of the file; return its rows, or None if it has none yet.

        Raises FormatError for a file with other settings, or of another format.
        """

    @abstractmethod
    def append(self, results: FrameResults) -> None:
        """Write further rows; if the program is killed later, all or none of them stay.

        Raises FormatError if they cannot be written, as on a full disk; the rows before stay.
        """

    @abstractmethod
    def close(self) -> None:
        """Close the file."""

    def require_names(self, there: Iterable[str], results: FrameResults) -> None:
        """Raise FormatError if rows have other columns than the file."""
        if list(there) != list(results.columns):
            raise FormatError(
                f"{self.path}: holds {', '.join(there)}, not {', '.join(results.columns)}; give another name to -o"
            )

    def require_terms(self, results: FrameResults) -> None:
        """Raise FormatError if the rows of an earlier run have other columns than the terms of the settings."""
        if "terms" in self.settings:
            terms = json.loads(self.settings["terms"])
            self.require_names([*terms, "total", *list(results.columns)[len(terms) + 1 :]], results)

    def require_settings(self, found: Settings) -> None:
        """Raise FormatError if the file was made with other settings."""
        for name in [*self.settings, *found]:
            if found.get(name) != self.settings.get(name):
                raise FormatError(
                    f"{self.path}: was made with {name} {found.get(name, 'unset')}, now it is "
                    f"{self.settings.get(name, 'unset')}; resume with the same settings, or give another name to -o"
                )

    def require_frame(self, row: int, frame: int) -> None:
        """Raise FormatError if a row is of another frame than it should be."""
        if row >= len(self.frames) or self.frames[row] != frame:
            raise FormatError(f"{self.path}: has frame {frame} where another is due; give another name to -o")


def unit_of(name: str) -> str:
    """Return the unit of a column of real numbers."""
    return FURTHER_COLUMNS[name].unit if name in FURTHER_COLUMNS else UNIT


def without_unit(head: str) -> str:
    """Return the name of a column of real numbers from its head in a CSV file, `name [unit]`."""
    name = head.rpartition(" [")[0]
    return name if head == f"{name} [{unit_of(name)}]" else head


def numbers_of(frames: range) -> NDArray[np.int64]:
    """Return the numbers of frames, (m,)."""
    return np.arange(frames.start, frames.stop, frames.step, dtype=np.int64)


def error_texts(results: FrameResults) -> list[str]:
    """A text of one line for each row, empty where the frame did not fail."""
    texts = [""] * len(next(iter(results.columns.values())))
    for k, text in results.errors.items():
        texts[k] = encodable(" ".join(text.split()))
    return texts


def joined(parts: list[FrameResults]) -> FrameResults:
    """Join the rows of several results, one after another."""
    names, first = list(parts[0].columns), 0
    errors: dict[int, str] = {}
    for part in parts:
        errors |= {first + k: text for k, text in part.errors.items()}
        first += len(part.columns[names[0]])
    columns = {name: np.concatenate([part.columns[name] for part in parts]) for name in names}
    return FrameResults(columns, errors, n_imaged=sum(part.n_imaged for part in parts))
