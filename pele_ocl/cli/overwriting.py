"""Outputs are never inputs: one check for every command."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..common.errors import FormatError
from ..common.writing import refuse_target, same_file
from ..forcefield import is_parameter_file

__all__ = ["refuse_overwriting", "same_file"]


def refuse_overwriting(output: Path, inputs: Sequence[Path]) -> None:
    """Raise FormatError for an output that is an input or cannot be written.

    A folder that is read, a force field say, has inputs in its files with parameters; others may be there.
    """
    refuse_target(output, [path for path in inputs if not path.is_dir()])
    for folder in inputs:
        if output.is_file() and _is_below(output, folder) and is_parameter_file(output):
            raise FormatError(f"{output}: belongs to the input {folder}; give the output another name")


def _is_below(path: Path, folder: Path) -> bool:
    return folder.is_dir() and folder.resolve() in path.resolve().parents
