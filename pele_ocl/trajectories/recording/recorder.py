"""Interface of files to which results are appended."""

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

Settings = Mapping[str, str]  # settings that affect the results, as texts
UNIT = "kcal/mol"  # of all floating-point columns except FURTHER_COLUMNS


class Recorder(ABC):
    """A file of results with one row per frame, which remains valid if the program is interrupted.

    frames : frames of all rows
    done : number of rows written
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
        """Read the settings in the existing file. Raises FormatError if it is missing or has another format."""

    @abstractmethod
    def resume(self) -> FrameResults | None:
        """Continue the existing file. Returns its rows, or None if there are none.

        Raises FormatError for a file with other settings or in another format.
        """

    @abstractmethod
    def append(self, results: FrameResults) -> None:
        """Append rows.

        Raises FormatError if writing fails, for example on a full disk. Previous rows are not affected.
        """

    @abstractmethod
    def close(self) -> None:
        """Close the file, if it is open."""

    def require_names(self, there: Iterable[str], results: FrameResults) -> None:
        """Raise FormatError if rows and file have different columns."""
        if list(there) != list(results.columns):
            raise FormatError(
                f"{self.path}: contains {', '.join(there)}, not {', '.join(results.columns)}; choose another "
                "name for -o"
            )

    def require_terms(self, results: FrameResults) -> None:
        """Raise FormatError if the columns of an earlier run differ from the terms in the settings."""
        if "terms" in self.settings:
            terms = json.loads(self.settings["terms"])
            self.require_names([*terms, "total", *list(results.columns)[len(terms) + 1 :]], results)

    def require_settings(self, found: Settings) -> None:
        """Raise FormatError if the settings in the file differ."""
        for name in [*self.settings, *found]:
            if found.get(name) != self.settings.get(name):
                raise FormatError(
                    f"{self.path}: was made with {name} {found.get(name, 'unset')}, now it is "
                    f"{self.settings.get(name, 'unset')}; resume with the same settings, or choose another name for -o"
                )

    def require_frame(self, row: int, frame: int) -> None:
        """Raise FormatError unless a row belongs to the expected frame."""
        if row >= len(self.frames) or self.frames[row] != frame:
            raise FormatError(f"{self.path}: has frame {frame} instead of the expected one; choose another name for -o")


def unit_of(name: str) -> str:
    """Return the unit of a floating-point column."""
    return FURTHER_COLUMNS[name].unit if name in FURTHER_COLUMNS else UNIT


def without_unit(head: str) -> str:
    """Return the name of a floating-point column from its CSV header, `name [unit]`."""
    name = head.rpartition(" [")[0]
    return name if head == f"{name} [{unit_of(name)}]" else head


def numbers_of(frames: range) -> NDArray[np.int64]:
    """Return the frame numbers as an array, (m,)."""
    return np.arange(frames.start, frames.stop, frames.step, dtype=np.int64)


def error_texts(results: FrameResults) -> list[str]:
    """Return a one-line error message for each row, empty for successful frames."""
    texts = [""] * len(next(iter(results.columns.values())))
    for k, text in results.errors.items():
        texts[k] = encodable(" ".join(text.split()))
    return texts


def joined(parts: list[FrameResults]) -> FrameResults:
    """Concatenate results."""
    names, first = list(parts[0].columns), 0
    errors: dict[int, str] = {}
    for part in parts:
        errors |= {first + k: text for k, text in part.errors.items()}
        first += len(part.columns[names[0]])
    columns = {name: np.concatenate([part.columns[name] for part in parts]) for name in names}
    return FrameResults(columns, errors, n_imaged=sum(part.n_imaged for part in parts))
