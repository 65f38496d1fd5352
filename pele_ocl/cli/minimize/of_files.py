"""Files of a structure each: read, minimised together, written by whichever process minimised them, and noted down."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from ...atoms import Atoms
from ...contract import of_structure, require
from ...errors import PeleError
from ...formats import replacing
from ...formats.conformation_files import ConformationFile, layout_of
from ...inputfile import InputFile, read_file
from ...jobs import Record, Spec
from ...jobs.journal import make_folder
from ...jobs.running import run_with
from ..cluster import asked_of
from ..command import coordinates_read, remember_coordinates
from .progress import StructureLine
from .work import Work, device_of, findings_of

Targeted = tuple[Path, Path]  # a structure's file, and the one that it is written to
# A structure that was read, its atoms, the file that it is written to, and where its coordinates are from.
_Waiting = tuple[InputFile, Atoms, Path, InputFile | Path | None]
_LEAST_GROUPS, _MOST_FILES = 64, 64  # of files that a worker takes at a time
WRITTEN = "written"  # of a record, for the journal: the SHA-256 of its file


def records_of_files(work: Work, paths: Sequence[Path], resume: bool) -> tuple[list[Record], str]:
    """The records of all structures, or of those of a shard, in their order, and the device that computed them."""
    context = click.get_current_context()
    asked = asked_of(context)
    wanted = paths if asked.shard is None else asked.shard.part(paths, "structures")
    targeted = [(path, work.targets.files[path]) for path in wanted]
    place = asked.place(context.params["device"])
    with StructureLine(len(wanted)) as progress:
        lean = replace(work, targets=replace(work.targets, files={}))  # there may be thousands
        spec = FilesSpec(lean, None if place.is_remote else progress)

        def passed_over(n: int) -> None:
            progress.first = n
            progress.done = 0 if place.is_remote else n

        found = run_with(spec, targeted, work.journal(asked.shard, list(map(str, paths))), resume, place, passed_over)
        records = list(progress.counted(found) if place.is_remote else found)
    return records, device_of(records, work)


@dataclass(frozen=True, eq=False)
class FilesSpec(Spec[Targeted]):
    """Structures moved to their minima, and written; progress : of this process, where it is told"""

    work: Work
    progress: StructureLine | None = None

    def name(self, item: Targeted) -> str:
        """The path of a structure."""
        return str(item[0])

    def still_counts(self, record: Record, item: Targeted) -> bool:
        """Whether an earlier record holds: for the same bytes of the structure, and for the file that it left.

        Workers replace files before the journal knows, so after a kill one may be of a run that noted nothing down.
        """
        try:
            found = [read_file(path).sha256 for path in item]
        except PeleError:
            return False
        return not record.failed and found == [record.sha256, record.more.get(WRITTEN)]

    def facts(self) -> dict[str, object]:
        """The device."""
        return self.work.facts()

    def compute(self, item: Targeted) -> dict[str, Any]:
        """The result of one structure, whose file is written."""
        (record,) = self.records([item], lambda: None)
        return {name: record[name] for name in record.result}

    def groups(self, items: Sequence[Targeted]) -> Iterator[Sequence[Targeted]]:
        """Neighbouring files, whose number depends on that of all."""
        size = max(1, min(-(-len(items) // _LEAST_GROUPS), _MOST_FILES))
        return (items[first : first + size] for first in range(0, len(items), size))

    def records(self, items: Iterable[Targeted], begin: Callable[[], None]) -> Iterator[Record]:
        """Files read until they are enough for the device, then minimised together.

        begin : begins the journal, before a structure is written
        """
        work, progress = self.work, self.progress
        waiting: list[_Waiting] = []
        enough, targeted = work.atoms_of_files, list(items)
        earlier = 0 if progress is None else progress.done
        for k, (path, target) in enumerate(targeted):
            try:
                source = read_file(path)
                atoms = work.read_atoms(source)
                require(of_structure(atoms, "noted"), work.strict)
                waiting.append((source, atoms, target, coordinates_read()))
            except PeleError as error:
                yield Record.failed_by(error, path)
            is_last = k + 1 == len(targeted)
            if waiting and (is_last or sum(len(atoms) for _, atoms, _, _ in waiting) >= enough):
                if progress is not None:
                    progress.done = earlier + k + 1 - len(waiting)
                yield from self._together(waiting, begin)
                waiting.clear()

    def _together(self, read: Sequence[_Waiting], begin: Callable[[], None]) -> Iterator[Record]:
        """Structures that were read, minimised, and each written once it is done."""
        work = self.work
        for k, result in work.as_done([atoms for _, atoms, _, _ in read], work.holding.each, self.progress):
            source, atoms, target, coordinates = read[k]
            name = str(source.path)
            if isinstance(result, str):
                yield Record.failed_by(result, name, source.sha256)
                continue
            try:
                values = result.to_dict(name)
                found = findings_of(atoms, values["energy_before"], work.strict)
                remember_coordinates(coordinates)
                written = _write(work, source, result.atoms, target, begin)
            except PeleError as error:
                yield Record.failed_by(error, name, source.sha256)
            else:
                notes = {"notes": list(atoms.notes)} if atoms.notes else {}
                yield Record(name, source.sha256, {**values, **work.how, **notes, **found}, more={WRITTEN: written})


def _write(work: Work, source: InputFile, atoms: Atoms, target: Path, begin: Callable[[], None]) -> str:
    """Write a structure as its own call writes it, so that its file does not depend on what else was minimised.

    The SHA-256 of the file is returned.
    """
    layout = layout_of(target, work.content(source, atoms, 1, work.call.facts(source.path, output=target, table=None)))
    make_folder(target.parent)
    with replacing(target) as temporary:
        with ConformationFile(temporary, layout, None) as file:
            file.append(1, atoms.positions)
            file.finish()
        begin()
    return read_file(target).sha256
