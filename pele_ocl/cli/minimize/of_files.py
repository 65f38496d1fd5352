"""Files of a structure each: read, minimised together, written by whichever process minimised them, and noted down."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

import click

from ...atoms import Atoms
from ...cluster import WorkersDiedError
from ...contract import of_structure, require
from ...errors import PeleError
from ...formats import replacing
from ...formats.conformation_files import ConformationFile, layout_of
from ...inputfile import InputFile, read_file
from ..cluster import Call, asked_of, shared_out
from ..command import COORDINATES
from ..contract import is_strict
from ..structures.several import described_by
from .journal import Journal
from .progress import StructureLine
from .targets import make_folder
from .work import Outcome, Work, findings_of

Targeted = tuple[Path, Path]  # a structure's file, and the one that it is written to
# A structure that was read, its atoms, the file that it is written to, and where its coordinates are from.
_Waiting = tuple[InputFile, Atoms, Path, InputFile | Path | None]
_LEAST_GROUPS, _MOST_FILES = 64, 64  # of files that a worker takes at a time


def outcomes_of_files(work: Work, paths: Sequence[Path]) -> tuple[list[Outcome], str]:
    """The outcomes of all structures, or of those of a shard, in their order, and the device that computed them."""
    shard = asked_of(click.get_current_context()).shard
    wanted = paths if shard is None else shard.part(paths, "structures")

    def compute(group: Sequence[Targeted]) -> list[Outcome]:
        return list(_minimized(work, group))

    found: dict[str, Outcome] = {}
    with shared_out(compute, work.facts, _died_of, paths=described_by(tuple(paths)), **work.for_workers) as shared:
        with work.journal(list(map(str, paths))) as journal, StructureLine(len(wanted)) as progress:
            found |= {
                str(path): Outcome(row)
                for path in wanted
                if (row := journal.earlier(path, work.targets.files[path])) is not None
            }
            left = [(path, work.targets.files[path]) for path in wanted if str(path) not in found]
            progress.done = progress.first = len(found)
            if shared.is_remote:
                outcomes = progress.counted(chain.from_iterable(shared.over(_groups(left))))
            else:
                outcomes = _minimized(work, left, journal, progress)
            for outcome in outcomes:
                journal.add(outcome.row, sha256=outcome.sha256, written=outcome.written)
                found[outcome.row["name"]] = outcome
        return [found[str(path)] for path in wanted], str(shared.facts["device"])


def _groups(targeted: Sequence[Targeted]) -> Iterator[Sequence[Targeted]]:
    """Neighbouring files, whose number depends on that of all."""
    size = max(1, min(-(-len(targeted) // _LEAST_GROUPS), _MOST_FILES))
    return (targeted[first : first + size] for first in range(0, len(targeted), size))


def _died_of(group: Sequence[Targeted], error: WorkersDiedError) -> list[Outcome]:
    return [Outcome.failed_by(str(error), str(path)) for path, _ in group]


def _minimized(
    work: Work, targeted: Sequence[Targeted], journal: Journal | None = None, progress: StructureLine | None = None
) -> Iterator[Outcome]:
    """Files read until they are enough for the device, then minimised together.

    journal : that of this process, to be begun before a structure is written; None in a worker
    """
    waiting: list[_Waiting] = []
    enough = work.atoms_of_files
    earlier = 0 if progress is None else progress.done
    for k, (path, target) in enumerate(targeted):
        try:
            source = read_file(path)
            atoms = work.read_atoms(source)
            require(of_structure(atoms, "noted"), is_strict())
            waiting.append((source, atoms, target, click.get_current_context().meta.get(COORDINATES)))
        except PeleError as error:
            yield Outcome.failed_by(str(error), str(path))
        is_last = k + 1 == len(targeted)
        if waiting and (is_last or sum(len(atoms) for _, atoms, _, _ in waiting) >= enough):
            if progress is not None:
                progress.done = earlier + k + 1 - len(waiting)
            yield from _together(work, waiting, journal, progress)
            waiting.clear()


def _together(
    work: Work, read: Sequence[_Waiting], journal: Journal | None, progress: StructureLine | None
) -> Iterator[Outcome]:
    """Structures that were read, minimised, and each written once it is done."""
    for k, result in work.as_done([atoms for _, atoms, _, _ in read], work.holding.each, progress):
        source, atoms, target, coordinates = read[k]
        name = str(source.path)
        if isinstance(result, str):
            yield Outcome.failed_by(result, name, source.sha256)
            continue
        try:
            row = result.to_dict(name)
            found = findings_of(atoms, row["energy_before"])
            click.get_current_context().meta[COORDINATES] = coordinates
            written = _write(work, source, result.atoms, target, journal)
        except PeleError as error:
            yield Outcome.failed_by(str(error), name, source.sha256)
        else:
            notes = {"notes": list(atoms.notes)} if atoms.notes else {}
            yield Outcome({**row, **notes, **found}, len(atoms), source.sha256, written=written)


def _write(work: Work, source: InputFile, atoms: Atoms, target: Path, journal: Journal | None) -> str:
    """Write a structure as its own call writes it, so that its file does not depend on what else was minimised.

    The SHA-256 of the file is returned.
    """
    with Call.now(paths=(source.path,), output=target, table=None).under_way():
        layout = layout_of(target, work.content(source, atoms, 1))
    make_folder(target.parent)
    with replacing(target) as temporary:
        with ConformationFile(temporary, layout, None) as file:
            file.append(1, atoms.positions)
            file.finish()
        if journal is not None:
            journal.begin()
    return read_file(target).sha256
