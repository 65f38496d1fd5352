"""Output files of a run over structures, planned before the computation."""

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
    """Paths of the output files of a run.

    output : the user's output; files : output file of each input; folder : folder of the files
    journal : journal of results, None for one structure
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
        """Determine the output files of inputs, without writing anything. Their folder need not exist.

        are_many : True if one input has many conformations, for one file; table : an additional output file
        journal : name of the journal for several structures; inputs : further input files

        Raises FormatError for outputs that cannot be written, or that would overwrite an input.
        """
        names = OutputNames.of(output)
        is_folder = names.is_folder
        if NAME in str(output.parent) or (is_folder and NAME in str(output)):
            raise FormatError(f"{output}: {NAME} is in the name of a folder; use it only in file names")
        if are_many and (is_folder or NAME in output.name):
            raise FormatError(
                f"{output}: all conformations are written to one file; give its name, {written_suffixes()}"
            )
        if len(paths) > 1 and NAME not in names.pattern:
            raise FormatError(f"{output}: is a single file for {len(paths):,} structures; give a folder, or use {NAME}")
        folder = output if is_folder else output.parent
        files = {path: names.name(path) for path in paths}
        _refuse(files, table, folder if NAME in names.pattern else None, [*paths, *inputs])
        several = f"{output.name}.jsonl" if are_many else journal
        return cls(output, files, folder, folder / several if are_many or len(paths) > 1 else None)


def refuse_files_of(command: str, targets: OutputTargets) -> None:
    """Raise FormatError if files to be overwritten were written by another command, according to its journal.

    command : name of the other command, the first part of its journal's name
    """
    for target, journal in _written_in(targets, f"{command}*.jsonl"):
        raise FormatError(
            f"{target.parent}: {target.name} there was written by `{command}` ({journal.name}) and would be "
            "overwritten; choose another folder"
        )


def files_of_other_run(targets: OutputTargets, settings: Mapping[str, str]) -> str:
    """Return a note that files of an earlier run with other options were overwritten, or "".

    Call it before the run, and print the note afterwards.

    settings : settings in the journal of this run
    """
    if targets.journal is None:
        return ""
    for target, journal in _written_in(targets, targets.journal.name):
        if read_journal(journal).settings != settings:
            return f"Note: {target.parent}: files of an earlier run with other options were overwritten"
        break
    return ""


def _written_in(targets: OutputTargets, pattern: str) -> Iterator[tuple[Path, Path]]:
    """Yield existing targets whose SHA-256 is listed in a journal in their folder, with that journal."""
    journals = sorted(targets.folder.glob(pattern)) if targets.folder.is_dir() else []
    written: dict[str, Path] = {}
    for journal in journals:
        with suppress(FormatError):  # not a journal, or another version
            records = read_journal(journal).records.values()
            written |= {str(record.more[WRITTEN]): journal for record in records if WRITTEN in record.more}
    for target in targets.files.values() if written else ():
        sha256 = read_file(target).sha256 if target.is_file() else ""
        if sha256 in written:
            yield target, written[sha256]


def _refuse(files: dict[Path, Path], table: Path | None, new_folder: Path | None, inputs: Sequence[Path]) -> None:
    """Raise FormatError for duplicate files, for inputs that would be overwritten, and for folders without access.

    new_folder : folder that is created if it does not exist
    """
    seen: dict[Path, Path] = {}
    for path, target in files.items():
        other = seen.setdefault(target.absolute(), path)
        if other != path:
            raise FormatError(
                f"{target}: would be written for both {other} and {path}; minimize one of them separately"
            )
        _refuse_place(target, inputs, new_folder)
    if table is not None:
        if any(same_file(table, target) for target in files.values()):
            raise FormatError(f"{table}: is also written as a structure; give the table a different name")
        _refuse_place(table, inputs, new_folder)


def _refuse_place(path: Path, inputs: Sequence[Path], new_folder: Path | None) -> None:
    if new_folder is None or new_folder.exists() or path.parent.absolute() != new_folder.absolute():
        refuse_overwriting(path, inputs)
        return
    there = next(folder for folder in new_folder.absolute().parents if folder.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        raise FormatError(f"{path}: the folder {new_folder} cannot be created in {there}; choose another output")
