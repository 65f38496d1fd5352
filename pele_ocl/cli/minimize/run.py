"""The way of a run through its structures: read, minimised together, written, and noted down."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from ...atoms import Atoms
from ...errors import InputError, PeleError
from ...formats.b_factors import read_b_factors
from ...formats.conformation_files import Content, open_conformations, write_conformation
from ...inputfile import InputFile, read_file
from ...minimize import MinimizeBatch, Minimizer, minimize_many
from ...minimize.many import EachOptions
from ...opencl.device import get_device
from ...trajectories.files import Positions
from ..frames import FrameOptions
from ..options import ReadAtoms
from ..report import provenance
from ..terminal import one_line
from .conformations import Conformations
from .holding import Holding
from .journal import Journal, Row
from .progress import StructureLine
from .targets import Targets

_ATOMS_TOGETHER = {"GPU": 1 << 19}  # of the structures that are minimised together
_FEWER_ATOMS = 1 << 14  # of other devices, which compute one after the other anyway
_NOT_SETTINGS = ("paths", "output", "table", "resume", "as_json", "verbose")  # parameters that change no result


@dataclass(frozen=True)
class Work:
    """All that a run was told.

    options : of the Minimizer, the same for all structures
    are_many : whether one input has many conformations, as frames or, with models "all", as models
    """

    read_atoms: ReadAtoms
    options: Mapping[str, Any]
    holding: Holding
    targets: Targets
    over: FrameOptions
    models: str
    resume: bool

    @property
    def are_many(self) -> bool:
        return bool(self.over.paths) or self.models == "all"

    @property
    def atoms_together(self) -> int:
        """Atoms of the structures that are minimised together."""
        return _ATOMS_TOGETHER.get(get_device(self.options["device"]).kind, _FEWER_ATOMS)

    def journal(self) -> Journal:
        """The journal of the run."""
        given = click.get_current_context().params
        settings = {name: str(value) for name, value in given.items() if name not in _NOT_SETTINGS and value}
        return Journal(self.targets.journal, settings, self.resume)

    def minimized(self, molecules: Sequence[Atoms], each: EachOptions | None, progress: StructureLine) -> MinimizeBatch:
        """The results of molecules, each held as `each` says; failures are recorded."""
        told = progress.share_of(molecules)
        return minimize_many(molecules, each=each, errors="record", progress=told, watch=progress.watch, **self.options)


@dataclass(frozen=True)
class Outcome:
    """A structure that is done. row : what --json prints; n_atoms : 0 where it could not be read or was done earlier"""

    row: Row
    n_atoms: int = 0

    @property
    def failed(self) -> bool:
        return "error" in self.row


def outcomes_of(work: Work, paths: Sequence[Path]) -> list[Outcome]:
    """The outcomes of all structures, in their order."""
    if work.are_many:
        return list(_of_conformations(work, paths[0]))
    found = {outcome.row["name"]: outcome for outcome in _of_files(work, paths)}
    return [found[str(path)] for path in paths]


def _of_files(work: Work, paths: Sequence[Path]) -> Iterator[Outcome]:
    """Files of a structure each: read until they are enough for the device, then minimised together."""
    waiting: list[tuple[InputFile, Atoms]] = []
    with work.journal() as journal, StructureLine(len(paths)) as progress:
        for k, path in enumerate(paths):
            try:
                source = read_file(path)
                row = journal.earlier(str(path), source.sha256) if work.targets.files[path].exists() else None
                if row is None:
                    waiting.append((source, work.read_atoms(source)))
                else:
                    yield Outcome(row)
            except PeleError as error:
                yield _failed(journal, str(path), str(error), sha256="")
            if waiting and (k + 1 == len(paths) or sum(len(atoms) for _, atoms in waiting) >= work.atoms_together):
                progress.done = k + 1 - len(waiting)
                yield from _of_read(work, waiting, journal, progress)
                waiting.clear()


def _of_read(
    work: Work, read: Sequence[tuple[InputFile, Atoms]], journal: Journal, progress: StructureLine
) -> Iterator[Outcome]:
    batch = work.minimized([atoms for _, atoms in read], work.holding.each, progress)
    for k, (source, atoms) in enumerate(read):
        result, name = batch.results[k], str(source.path)
        if result is None:
            yield _failed(journal, name, batch.errors[k], sha256=source.sha256)
            continue
        try:
            b_factors = None if atoms.labels is None else read_b_factors(source, atoms.labels)
            content = _content(work, source, result.atoms, 1, b_factors)
            write_conformation(work.targets.files[source.path], content)
        except PeleError as error:
            yield _failed(journal, name, str(error), sha256=source.sha256)
            continue
        row = result.to_dict(name)
        journal.add(row, sha256=source.sha256)
        yield Outcome(row, len(atoms))


def _of_conformations(work: Work, path: Path) -> Iterator[Outcome]:
    """Frames or models of one molecule, which go to one file in their order."""
    conformations = Conformations.of(path, work.read_atoms, work.over, work.models)
    atoms, source = conformations.atoms, conformations.source
    content = _content(work, source, atoms, len(conformations), None)
    size = max(1, work.atoms_together // len(atoms))
    held = work.holding.of(atoms)  # the same atoms in all conformations; restraints hold to each one's own positions
    minimizer = None if work.holding.restraints else Minimizer(atoms, **work.options, **held)
    with work.journal() as journal, StructureLine(len(conformations)) as progress:
        earlier = list(journal.rows.values())
        journal.require(earlier, conformations.names, conformations.sha256)
        yield from (Outcome(journal.reported(row), len(atoms)) for row in earlier)
        progress.done = progress.first = len(earlier)
        with open_conformations(work.targets.output, content, journal.size) as file:
            for first, positions in conformations.pieces(len(earlier), size):
                if minimizer is None:
                    batch = _restrained(work, atoms, positions, held, progress)
                else:
                    told = progress.share_of(positions)
                    batch = minimizer.minimize_batch(positions, errors="record", progress=told, watch=progress.watch)
                for k, result in enumerate(batch.results):
                    file.append(first + k + 1, None if result is None else result.positions)
                    name = conformations.names[first + k]
                    more = {"sha256": conformations.sha256, "size": file.size}
                    if result is None:
                        yield _failed(journal, name, batch.errors[k], **more)
                    else:
                        row = result.to_dict(name)
                        journal.add(row, **more)
                        yield Outcome(row, len(atoms))
                progress.done = first + len(positions)
            file.finish()


def _restrained(
    work: Work, atoms: Atoms, conformations: Positions, held: Mapping[str, Any], progress: StructureLine
) -> MinimizeBatch:
    """The results of conformations (m, n, 3) A, each restrained to its own positions."""
    molecules: dict[int, Atoms] = {}
    reasons: dict[int, str] = {}
    for k, positions in enumerate(conformations):
        try:
            molecules[k] = atoms.moved(positions)
        except InputError as error:
            reasons[k] = str(error)
    batch = work.minimized(list(molecules.values()), lambda _: held, progress)
    results = dict(zip(molecules, batch.results, strict=True))
    reasons |= {k: batch.errors[place] for place, k in enumerate(molecules) if place in batch.errors}
    return MinimizeBatch([results.get(k) for k in range(len(conformations))], reasons, batch.seconds)


def _content(work: Work, source: InputFile, atoms: Atoms, n: int, b_factors: Any) -> Content:
    return Content(
        atoms, n, str(source), b_factors, work.options["precision"],
        {**provenance(source), "notes": list(atoms.notes) or ""},
    )  # fmt: skip


def _failed(journal: Journal, name: str, reason: str, **more: object) -> Outcome:
    row: Row = {"name": name, "error": one_line(reason)}
    journal.add(row, **more)
    return Outcome(row)
