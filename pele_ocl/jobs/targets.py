"""Files that a run over structures writes, planned before anything is computed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ..common.errors import FormatError
from ..common.inputfile import read_file
from ..common.writing import same_file
from ..formats.conformation_files import written_suffixes
from .journal import read_journal
from .outputs import NAME, OutputNames, refuse_overwriting
from .records import WRITTEN


@dataclass(frozen=True)
class OutputTargets:
    """Paths of what is written.

    output : the user's; files : of each input; folder : of the files; journal : of results, None for one structure
    """

    output: Path
    files: dict[Path, Path]
    folder: Path
    journal: Path | None

    @classmethod
    def planned(
        cls, output: Path, paths: Sequence[Path], are_many: bool, journal: str = "minimize.jsonl",
        table: Path | None = None, inputs: Iterable[Path] = (),
    ) -> OutputTargets:  # fmt: skip
        """Plan the targets of inputs, in a folder that is still to be made; nothing is written.

        are_many : True if one input has many conformations, for one file; table : a file to be written, too
        journal : name of the journal of several structures; inputs : further files that are read

        Raises FormatError for what cannot be written, or would be written over an input.
        """
        names = OutputNames.of(output)
        is_folder = names.is_folder
        if NAME in str(output.parent) or (is_folder and NAME in str(output)):
            raise FormatError(f"{output}: {NAME} is in the name of a folder; use it in that of the files alone")
        if are_many and (is_folder or NAME in output.name):
            raise FormatError(f"{output}: all conformations go to one file; name it, {written_suffixes()}")
        if len(paths) > 1 and NAME not in names.pattern:
            raise FormatError(f"{output}: is one file for {len(paths):,} structures; name a folder, or use {NAME}")
        folder = output if is_folder else output.parent
        files = {path: names.name(path) for path in paths}
        _refuse(files, table, folder if NAME in names.pattern else None, [*paths, *inputs])
        several = f"{output.name}.jsonl" if are_many else journal
        return cls(output, files, folder, folder / several if are_many or len(paths) > 1 else None)


def refuse_files_of(command: str, targets: OutputTargets) -> None:
    """Raise FormatError for files that another command wrote, as its journal in the folder says.

    command : the other one, with which the name of its journal begins
    """
    for target, journal in _written_in(targets, f"{command}*.jsonl"):
        raise FormatError(
            f"{target.parent}: {target.name} there was written by `{command}` ({journal.name}) and would be "
            "overwritten; name another folder"
        )


def files_of_other_run(targets: OutputTargets, settings: Mapping[str, str]) -> str:
    """Return a note that files of an earlier run with other options were overwritten; "" if there are none.

    settings : of this run's journal. Call it before the run, and print the note after it
    """
    if targets.journal is None:
        return ""
    for target, journal in _written_in(targets, targets.journal.name):
        if read_journal(journal).settings != settings:
            return f"Note: {target.parent}: files of an earlier run with other options were overwritten"
        break
    return ""


def _written_in(targets: OutputTargets, pattern: str) -> Iterator[tuple[Path, Path]]:
    """Iterate over targets whose files have the SHA-256 in a journal of their folder, with that journal."""
    journals = sorted(targets.folder.glob(pattern)) if targets.folder.is_dir() else []
    written: dict[str, Path] = {}
    for journal in journals:
        with suppress(FormatError):  # no journal, or one of another version
            records = read_journal(journal).records.values()
            written |= {str(record.more[WRITTEN]): journal for record in records if WRITTEN in record.more}
    for target in targets.files.values() if written else ():
        sha256 = read_file(target).sha256 if target.is_file() else ""
        if sha256 in written:
            yield target, written[sha256]


def _refuse(files: dict[Path, Path], table: Path | None, new_folder: Path | None, inputs: Sequence[Path]) -> None:
    """Raise FormatError for two files of one name, for inputs that would be written over, and for bad places.

    new_folder : one that is made if it does not exist
    """
    seen: dict[Path, Path] = {}
    for path, target in files.items():
        other = seen.setdefault(target.absolute(), path)
        if other != path:
            raise FormatError(f"{target}: would be written for {other} and for {path}; minimize one of them by itself")
        _refuse_place(target, inputs, new_folder)
    if table is not None:
        if any(same_file(table, target) for target in files.values()):
            raise FormatError(f"{table}: is written as a structure, too; give the table another name")
        _refuse_place(table, inputs, new_folder)


def _refuse_place(path: Path, inputs: Sequence[Path], new_folder: Path | None) -> None:
    if new_folder is None or new_folder.exists() or path.parent.absolute() != new_folder.absolute():
        refuse_overwriting(path, inputs)
        return
    there = next(folder for folder in new_folder.absolute().parents if folder.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        raise FormatError(f"{path}: the folder {new_folder} cannot be made in {there}; name another output")
