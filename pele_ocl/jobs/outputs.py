"""Names of the input and output files of a job."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from ..common.errors import FormatError, KeywordError
from ..common.writing import refuse_overwriting as refuse_same
from ..common.writing import refuse_target
from ..forcefield import is_parameter_file
from ..formats import StructureFormat, is_structure, structure_format
from .journal import read_journal

_LONGEST = 60  # letters of a name made from a title
_RESERVED = re.compile(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\..*)?")  # device names on Windows
NAME = "{name}"  # placeholder in outputs for the structure's name without its suffix


@dataclass(frozen=True)
class OutputNames:
    """Names of output files, made from a pattern.

    pattern : a path, which may contain {name} for the name of the structure
    is_folder : whether files are named like their structures, with the suffix of their format
    """

    pattern: str
    is_folder: bool = False

    @classmethod
    def of(cls, output: str | Path) -> OutputNames:
        """Parse an output argument: a folder, a name with {name}, or a file."""
        path = Path(output)
        is_folder = NAME not in path.name and (path.is_dir() or str(output).endswith("/") or not path.suffix)
        return cls(str(path / NAME) if is_folder else str(path), is_folder)

    def name(self, path: Path) -> Path:
        """Return the output file of a structure. Raises FormatError for a format that cannot be written."""
        stem = Path(path.name.removesuffix(".gz")).stem
        is_read = is_structure(path) and not path.is_dir()  # folders cause an error later
        form = structure_format(path) if is_read else StructureFormat
        suffix = form.written_as if self.is_folder else ""
        target = Path(self.pattern.replace(NAME, stem) + suffix)
        from ..formats.conformation_files import require_suffix  # lazy import, only needed to write structures

        require_suffix(target)
        return target


def held_already(folder: Path, what: str = "a run") -> FormatError:
    """Return the error for a folder with an earlier run, which requires `resume` or `overwrite`."""
    return FormatError(
        f"{folder}: already contains {what}; continue it with `resume=True`, replace it with `overwrite=True`, "
        "or choose another folder", code="exists",
    )  # fmt: skip


def require_replaceable(overwrite: bool, resume: bool, folder: Path | None, is_shard: bool = False) -> None:
    """Raise KeywordError for keywords that cannot be combined with `overwrite`."""
    if not overwrite:
        return
    if resume:
        raise KeywordError("choose one of `resume` and `overwrite`")
    if folder is None:
        raise KeywordError("`overwrite` replaces files of an earlier run; give `output`")
    if is_shard:
        raise KeywordError("`overwrite` replaces a complete run; with `shard`, remove the folder instead")


def remove_run(files: Iterable[Path], folders: Iterable[Path], inputs: Sequence[str | PathLike[str]]) -> None:
    """Remove the files of an earlier run, and then those of its folders that are empty; missing paths are ignored.

    Of symbolic links, the link is removed and the file it refers to is kept.

    inputs : files, and folders whose files are read

    Raises FormatError, before removing anything, if any of the files is an input; also if a file cannot be removed.
    """
    present = [path for path in files if path.is_file() or path.is_symlink()]
    sources = {_identity(source): source for source in inputs if os.path.exists(source)}  # there may be thousands
    for path in present:
        if path.exists() and (source := sources.get(_identity(path))) is not None:
            refuse_same(path, source)
        if (source := sources.get(_identity(path.parent))) is not None:
            raise FormatError(f"{path}: belongs to the input {source}; choose another folder for the run")
    for path in present:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise FormatError(f"{path}: cannot be removed: {os.strerror(error.errno or 0)}") from None
    for folder in folders:
        with suppress(OSError):  # missing, or contains other files
            folder.rmdir()


def _identity(path: str | PathLike[str]) -> tuple[int, int]:
    """Return an identifier of an existing file or folder, also through links."""
    found = os.stat(path)
    return found.st_dev, found.st_ino


def structures_in(journal: Path, kind: str, folder: Path) -> list[Path]:
    """Return the structures that a run wrote to a folder, according to its journal.

    Empty for a journal of another kind, and for one that cannot be read.
    """
    try:
        found = read_journal(journal)
    except (FormatError, OSError):
        return []
    names = [name for name, record in found.records.items() if not record.failed and Path(name).name == name]
    return [folder / f"{name}.pdb" for name in names] if found.kind == kind else []


class UniqueNames:
    """Create unique names that are safe in file systems and shells, ignoring case."""

    def __init__(self) -> None:
        self._taken = set[str]()

    def of(self, title: str, *otherwise: str) -> str:
        """Return a name made from the first string with letters or digits, numbered if already taken."""
        base = next(filter(None, map(self._safe, (title, *otherwise))), "unnamed")
        name, number = base, 1
        while name.lower() in self._taken:
            number += 1
            name = f"{base}_{number}"
        self._taken.add(name.lower())
        return name

    @staticmethod
    def _safe(text: str) -> str:
        plain = re.sub(r"[^A-Za-z0-9._-]+", "_", text).strip("._-")[:_LONGEST]
        return f"_{plain}" if _RESERVED.fullmatch(plain) else plain


def expanded(paths: Iterable[Path]) -> tuple[Path, ...]:
    """Return the paths without duplicates; patterns such as 'designs/*.pdb' are replaced by the matching files."""
    found: dict[Path, None] = {}
    for path in paths:
        matches = [] if path.exists() else sorted(glob.glob(str(path), recursive=True))
        found |= dict.fromkeys(map(Path, matches)) if matches else {path: None}
    return tuple(found)


def require_inputs(paths: Iterable[Path]) -> None:
    """Raise FormatError if any of the files does not exist."""
    missing = [path for path in paths if not path.exists()]
    if missing:
        more = f", and {len(missing) - 1:,} more" if len(missing) > 1 else ""
        raise FormatError(f"{missing[0]}: no such file{more}")


def refuse_overwriting(output: Path, inputs: Sequence[Path]) -> None:
    """Raise FormatError if an output is also an input or cannot be written.

    For input folders, such as force fields, only their parameter files are protected.
    """
    refuse_target(output, [path for path in inputs if not path.is_dir()])
    for folder in inputs:
        if output.is_file() and _is_below(output, folder) and is_parameter_file(output):
            raise FormatError(f"{output}: belongs to the input {folder}; give the output a different name")


def _is_below(path: Path, folder: Path) -> bool:
    return folder.is_dir() and folder.resolve() in path.resolve().parents
