"""Frames or models of one molecule: minimised, and written to one file in their order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import click

from ...atoms import Atoms, Floats
from ...common.errors import FormatError, InputError
from ...common.hashing import sha256_of
from ...common.inputfile import InputFile, read_file
from ...contract import of_structure
from ...formats.conformation_files import ConformationFile, layout_of
from ...jobs import Record, shared
from ...jobs.facts import notes_of
from ...jobs.reading import MoleculeRead, molecule_of
from ...jobs.records import Kind, entries
from ...jobs.sharing import Shared
from ...minimize import MinimizeBatch, Minimizer, MinimizeResult
from ...minimize.spec import facts_of_model, facts_of_molecule
from ...trajectories import Trajectory
from ...trajectories.files import Positions
from ...trajectories.fingerprints import fingerprint
from ...trajectories.reading import PIECE_ATOMS
from ..cluster import cluster_options_of
from ..frames import FrameOptions, noted
from ..json_lines import timed
from ..options import ReadAtoms
from .progress import StructureLine
from .work import MinimizeRequest, device_of


@dataclass(frozen=True, eq=False)
class Conformations:
    """Conformations of one molecule, which are read as they are asked for.

    source, atoms : the molecule; names, numbers : of all conformations, "frame 7" and 7
    sha256 : of all that they come from; failed : why models cannot be read, by place
    """

    source: InputFile
    atoms: Atoms
    names: Sequence[str]
    numbers: Sequence[int]
    sha256: str
    failed: Mapping[int, str]
    _given: Trajectory | Floats

    @classmethod
    def of(cls, path: Path, read_atoms: ReadAtoms, trajectory: FrameOptions, models: str) -> Conformations:
        """Open the frames of a trajectory, if one was given, else the models."""
        molecule = molecule_of(read_file(path), read_atoms, "one" if trajectory.paths else models)
        atoms, source = molecule.atoms, molecule.source
        if not trajectory.paths:
            molecule = molecule.without(_refused(molecule))
            atoms = molecule.atoms
            assert molecule.conformations is not None
            names = [f"model {number}" for number in molecule.numbers]
            return cls(
                source, atoms, names, molecule.numbers, source.sha256, molecule.failed, molecule.conformations
            )  # fmt: skip
        frames = noted(trajectory.opened(atoms, molecule.chosen))
        atoms = replace(atoms, notes=(*atoms.notes, *frames.notes))
        files = [fingerprint(path) for path in frames.paths]
        of = {"source": source.sha256, "files": files, "frames": frames.frames, "atoms": frames.atoms_sha256}
        numbers = frames.frames
        return cls(source, atoms, [f"frame {k}" for k in numbers], numbers, sha256_of(of), {}, frames)

    def __len__(self) -> int:
        return len(self.names)

    def positions(self, part: range) -> Positions:
        """Read the positions (len(part), n, 3) A of some conformations, by their places."""
        if isinstance(self._given, Trajectory):
            return self._given.positions(self._given.frames[part.start : part.stop])
        return self._given[part.start : part.stop]

    def torn(self, part: range) -> Mapping[int, str]:
        """Tell why conformations whose positions are NaN cannot be used, by their place in a part."""
        if isinstance(self._given, Trajectory):
            return self._given.piece(self._given.frames[part.start : part.stop]).torn
        return {place - part.start: reason for place, reason in self.failed.items() if place in part}

    def close(self) -> None:
        """Close the file that positions were read from."""
        if isinstance(self._given, Trajectory):
            self._given.close()


def _refused(molecule: MoleculeRead) -> dict[int, str]:
    """Find models that cannot be minimised, and why, by place."""
    found = ((place, of_structure(atoms, "noted", places_sites=True)) for place, atoms in molecule.models())
    return {place: of.text for place, findings in found for of in findings[::-1] if of.action == "refused"}


_Found = tuple[Record, Floats | None]  # a conformation's record, and its positions (n, 3) A, None where it failed
_Numbered = tuple[int, _Found]  # a conformation, from 1
_LEAST_RANGES = 64  # of conformations, so that many workers have something to do
SIZE = "size"  # of a record, for the journal: that of the file of all conformations by then


@dataclass(eq=False)
class Relaxing:
    """Conformations on their way to their minima, which each process reads for itself.

    path : of the molecule; progress : of this process, where it is told
    """

    work: MinimizeRequest
    path: Path
    progress: StructureLine | None = None

    @cached_property
    def conformations(self) -> Conformations:
        """Conformations, which `close` closes."""
        return Conformations.of(self.path, self.work.read_atoms, self.work.trajectory, self.work.models)

    @cached_property
    def held(self) -> Mapping[str, Any]:
        """Options of what is held: the same atoms in all, to each one's positions or a reference's."""
        return self.work.held.of(self.conformations.atoms)

    @cached_property
    def minimizer(self) -> Minimizer:
        return Minimizer(self.conformations.atoms, **self.work.options, **self.held)

    def __getstate__(self) -> dict[str, Any]:
        return {"work": self.work, "path": self.path, "progress": None}

    def facts(self) -> dict[str, object]:
        """Name the device."""
        return self.work.facts()

    def compute(self, part: range, /) -> list[_Found]:
        """Minimise some conformations, by their places."""
        conformations = self.conformations
        positions, sha256 = conformations.positions(part), conformations.sha256
        batch = self._batch(positions)
        torn = conformations.torn(part) if batch.errors else {}
        return [
            (Record.failed_by(torn.get(k, batch.errors[k]), name, sha256), None)
            if result is None
            else self._found(result, name, positions[k])
            for k, (result, name) in enumerate(zip(batch.results, (conformations.names[j] for j in part), strict=True))
        ]

    def _found(self, result: MinimizeResult, name: str, start: Floats) -> _Found:
        """Make the record of a conformation that is done, with the findings about its start."""
        atoms, sha256 = self.conformations.atoms, self.conformations.sha256
        try:
            values = facts_of_model(result, atoms.moved(start), self.work.strict, self.work.targets.output)
        except InputError as error:  # which --strict makes of a finding
            return Record.failed_by(error, name, sha256), None
        return Record(name, sha256, {**values, **self.work.facts()}), result.positions

    def _batch(self, positions: Positions) -> MinimizeBatch:
        if self.work.held.to_starts:
            return self._restrained(positions)
        watch = None if self.progress is None else self.progress.watch
        return self.minimizer.minimize_batch(positions, errors="record", watch=watch)

    def _restrained(self, positions: Positions) -> MinimizeBatch:
        """Minimise conformations (m, n, 3) A, each restrained to its own positions."""
        molecules: dict[int, Atoms] = {}
        reasons: dict[int, str] = {}
        for k, own in enumerate(positions):
            try:
                molecules[k] = self.conformations.atoms.moved(own)
            except InputError as error:
                reasons[k] = str(error)
        batch = self.work.minimized(list(molecules.values()), lambda _: self.held, self.progress)
        results = dict(zip(molecules, batch.results, strict=True))
        reasons |= {k: batch.errors[place] for place, k in enumerate(molecules) if place in batch.errors}
        return MinimizeBatch([results.get(k) for k in range(len(positions))], reasons, batch.seconds)


def records_of_conformations(work: MinimizeRequest, path: Path, resume: bool) -> tuple[list[Record], Record]:
    """Minimise all conformations; give a record of each, in their order, and the one of the structure with them all."""
    context = click.get_current_context()
    relaxing = Relaxing(work, path)
    with (
        closing(relaxing.conformations),
        shared(relaxing, cluster_options_of(context).place(context.params["device"])) as done,
    ):
        records = list(_written(relaxing, done, resume))
        return records, _together(relaxing, records)


def _together(relaxing: Relaxing, records: Sequence[Record]) -> Record:
    """Make the record of the structure, with an entry for each conformation."""
    conformations, work = relaxing.conformations, relaxing.work
    kind: Kind = "frame" if work.trajectory.paths else "model"
    own = ({name: value for name, value in record.result.items() if name != "device"} for record in records)
    results = ((record.error or values) for record, values in zip(records, own, strict=True))
    result = {
        **facts_of_molecule(conformations.atoms, work.options),
        "device": device_of(records, work),
        **entries(kind, zip(conformations.numbers, results, strict=True)),
        "findings": [],
        **notes_of(conformations.atoms),
    }
    return Record(str(conformations.source), conformations.source.sha256, timed(result))


def _written(relaxing: Relaxing, done: Shared[range, list[_Found]], resume: bool) -> Iterator[Record]:
    """Compute all conformations, write them and note them down when they come; give their records.

    The file begins with the first conformation that is done. So a call that can do none leaves an earlier one alone.
    """
    work, conformations = relaxing.work, relaxing.conformations
    layout = layout_of(work.targets.output, work.content(conformations.source, conformations.atoms, len(conformations)))
    with work.journal() as journal, StructureLine(len(conformations)) as progress:
        earlier = list(journal.resume().values()) if resume else []
        _require_first(earlier, conformations, journal.path)
        yield from earlier
        progress.done = progress.first = len(earlier)
        if done.is_remote:
            size = _size_for_workers(conformations)
        else:
            size = max(1, work.atoms_together // len(conformations.atoms))
            relaxing.progress = progress
        parts = list(_ranges(len(earlier), len(conformations), size))
        numbered = _numbered(parts, done.results, progress)
        first = [] if earlier else _to_first_done(numbered)
        if first and first[-1][1][0].failed:
            yield from (record for _, (record, _) in first)
            return
        journal.begin()
        sizes = [record.more[SIZE] for record in earlier if SIZE in record.more]
        with ConformationFile(work.targets.output, layout, sizes[-1] if sizes else None) as file:
            for number, (record, positions) in chain(first, numbered):
                file.append(number, positions)
                journal.add(replace(record, more={SIZE: file.size}))
                yield record
            file.finish()


def _require_first(records: Sequence[Record], conformations: Conformations, path: Path | None) -> None:
    """Raise FormatError unless the records of an earlier run are of the first of these conformations."""
    wanted = [(name, conformations.sha256) for name in conformations.names[: len(records)]]
    if [(record.structure, record.sha256) for record in records] != wanted:
        raise FormatError(f"{path}: is of other conformations; start anew, without --resume")


def _numbered(
    parts: list[range], results_of: Callable[[Iterable[range]], Iterator[list[_Found]]], progress: StructureLine
) -> Iterator[_Numbered]:
    """Number the conformations, and tell of them when they come."""
    for part, found in zip(parts, results_of(parts), strict=True):
        yield from zip((place + 1 for place in part), found, strict=True)
        progress.done = part.stop
        progress.tell(0)


def _to_first_done(numbered: Iterator[_Numbered]) -> list[_Numbered]:
    """Take the conformations up to the first that did not fail, or all."""
    found = list[_Numbered]()
    for number, (record, positions) in numbered:
        found.append((number, (record, positions)))
        if not record.failed:
            break
    return found


def _size_for_workers(conformations: Conformations) -> int:
    """Conformations that a worker minimises together, which depends on nothing but the conformations."""
    most = max(1, PIECE_ATOMS // len(conformations.atoms))
    return max(1, min(-(-len(conformations) // _LEAST_RANGES), most))


def _ranges(first: int, end: int, size: int) -> Iterator[range]:
    """Divide places from `first` on into ranges of a size, or up to the next multiple of it."""
    while first < end:
        part = range(first, min(end, (first // size + 1) * size))
        yield part
        first = part.stop
