"""Output files to which results of frames are appended during a run, and which can be continued."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from os import PathLike
from pathlib import Path

from ...common.errors import FormatError
from ...common.writing import refuse_target
from .hdf5 import Hdf5Recorder
from .recorder import Recorder, Settings, joined, numbers_of
from .text import CsvRecorder, JsonLinesRecorder

__all__ = ["RECORDERS", "Recorder", "Settings", "joined", "numbers_of", "recorder_for", "require_record_suffix"]

RECORDERS: dict[str, Callable[[Path, Settings, range], Recorder]] = {
    ".h5": Hdf5Recorder,
    ".csv": CsvRecorder,
    ".jsonl": JsonLinesRecorder,
}


def require_record_suffix(path: str | PathLike[str]) -> str:
    """Return the suffix of a file for results of frames. Raises FormatError unless it is a key of RECORDERS."""
    suffix = Path(path).suffix.lower()
    if suffix not in RECORDERS:
        raise FormatError(
            f"{path}: unknown suffix {suffix!r}; results of a trajectory can be appended to "
            f"{', '.join(RECORDERS)}" + ("; JSON cannot be appended to: use .jsonl" if suffix == ".json" else "")
        )
    return suffix


def recorder_for(
    path: str | PathLike[str], settings: Settings, frames: range, inputs: Iterable[str | PathLike[str]] = ()
) -> Recorder:
    """Create the recorder for a path. It writes a new file unless its `resume` is called.

    settings : settings that affect the results; frames : frames of all rows; inputs : files that must not be
        overwritten

    Raises FormatError for an unknown suffix, an input file, or a directory that is not writable.
    """
    suffix = require_record_suffix(path)
    refuse_target(path, inputs)
    return RECORDERS[suffix](Path(path), settings, frames)
