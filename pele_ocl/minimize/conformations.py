"""Minimization of frames or models of one molecule, written to one file in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from os import PathLike
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol

from ..atoms import Atoms, Floats
from ..common.errors import FormatError, InputError
from ..common.hashing import sha256_of
from ..common.inputfile import InputFile, read_file
from ..common.notes import note
from ..contract import Image, of_structure
from ..energy.restraints import Held
from ..formats.conformation_files import ConformationFile, layout_of
from ..jobs.facts import notes_of
from ..jobs.journal import Journal
from ..jobs.records import Kind, Record, entries
from ..jobs.shards import Place
from ..jobs.sharing import Shared, shared
from ..opencl.device import get_device
from ..reading import MoleculeRead
from ..trajectories import Trajectory
from ..trajectories.files import Positions
from ..trajectories.fingerprints import fingerprint
from ..trajectories.frames import FrameWords
from ..trajectories.reading import PIECE_ATOMS, Paths, opened
from .minimizer import Minimizer, minimize_all
from .result import MinimizeBatch, MinimizeResult, Origin, facts_of_model, facts_of_molecule, result_of_record
from .spec import ATOMS_TOGETHER, MinimizeSpec, setting_text

Watch = Callable[[int, int, float], None]
_FEWER_ATOMS = 1 << 14  # minimized together on devices other than GPUs
_LEAST_RANGES = 64  # of conformations, so that many workers are busy
SIZE = "size"  # in journal records: size of the file of conformations after this one


class OpensFrames(Protocol):
    """Opens the frames of a molecule; must be picklable."""

    def opened(self, atoms: Atoms, chosen: Any = None, /) -> Trajectory: ...


@dataclass(frozen=True)
class Frames:
    """Frames of trajectory files or in memory; fields as parameters of `pele_ocl.trajectory`."""

    trajectory: Trajectory | Paths
    frames: FrameWords = None
    topology: str | PathLike[str] | None = None
    image: Image = "auto"

    def opened(self, atoms: Atoms, chosen: Any = None, /) -> Trajectory:
        """Open the frames of atoms. chosen : indices of these atoms in their file, None for all"""
        if chosen is None or self.topology is not None:
            return opened(atoms, self.trajectory, self.frames, None, self.topology, self.image)
        try:
            return opened(atoms, self.trajectory, self.frames, chosen, None, self.image)
        except (FormatError, InputError):  # the frames contain only the chosen atoms
            return opened(atoms, self.trajectory, self.frames, None, None, self.image)


@dataclass(frozen=True, eq=False)
class Conformations:
    """Conformations of one molecule, read on demand.

    source : file of the molecule, None for Atoms; atoms : the molecule
    names, numbers : of all conformations, such as "frame 7" and 7
    sha256 : of all input; failed : reasons why models cannot be read, by index
    """

    source: InputFile | None
    atoms: Atoms
    names: Sequence[str]
    numbers: Sequence[int]
    sha256: str
    failed: Mapping[int, str]
    _given: Trajectory | Floats

    @classmethod
    def of(cls, what: Path | Atoms, spec: MinimizeSpec, frames: OpensFrames | None) -> Conformations:
        """Open the frames of a molecule or, if there are none, the models of its file."""
        if isinstance(what, Atoms):
            molecule, source, atoms = None, None, what
        else:
            source = read_file(what)
            molecule = spec.reading.molecule(source, "all" if frames is None else "one")
            atoms = molecule.atoms
        if frames is None:
            assert molecule is not None
            molecule = molecule.without(_refused(molecule))
            assert molecule.conformations is not None
            names = [f"model {number}" for number in molecule.numbers]
            return cls(
                source, molecule.atoms, names, molecule.numbers, molecule.source.sha256, molecule.failed,
                molecule.conformations,
            )  # fmt: skip
        found = frames.opened(atoms, None if molecule is None else molecule.chosen)
        for sentence in found.notes:
            note(f"Note: {sentence}")
        atoms = replace(atoms, notes=(*atoms.notes, *found.notes))
        files = [fingerprint(path) for path in found.paths]
        own = sha256_of(atoms) if source is None else source.sha256
        of = {"source": own, "files": files, "frames": found.frames, "atoms": found.atoms_sha256}
        return cls(source, atoms, [f"frame {k}" for k in found.frames], found.frames, sha256_of(of), {}, found)

    def __len__(self) -> int:
        return len(self.names)

    def positions(self, part: range) -> Positions:
        """Read the positions (len(part), n, 3) A of a range of conformations."""
        if isinstance(self._given, Trajectory):
            return self._given.positions(self._given.frames[part.start : part.stop])
        return self._given[part.start : part.stop]

    def torn(self, part: range) -> Mapping[int, str]:
        """Return why conformations in a range have NaN positions, by index in the range."""
        if isinstance(self._given, Trajectory):
            return self._given.piece(self._given.frames[part.start : part.stop]).torn
        return {place - part.start: reason for place, reason in self.failed.items() if place in part}

    def close(self) -> None:
        if isinstance(self._given, Trajectory):
            self._given.close()


def _refused(molecule: MoleculeRead) -> dict[int, str]:
    """Return why models cannot be minimized, by index."""
    found = ((place, of_structure(atoms, "noted", places_sites=True)) for place, atoms in molecule.models())
    return {place: of.text for place, findings in found for of in findings[::-1] if of.action == "refused"}


# Record of a conformation, and its result or, if that is written, its positions; None if it failed.
_Found = tuple[Record, MinimizeResult | Floats | None]
_Numbered = tuple[int, _Found]  # number of a conformation, from 1


@dataclass(eq=False)
class Minimizing:
    """Minimization of a molecule's conformations; each process opens them separately.

    spec : how to minimize them; what : the molecule; frames : its frames, None for the models of its file
    watch : of this process
    """

    spec: MinimizeSpec
    what: Path | Atoms
    frames: OpensFrames | None = None
    watch: Watch | None = None

    @cached_property
    def conformations(self) -> Conformations:
        return Conformations.of(self.what, self.spec, self.frames)

    @cached_property
    def held(self) -> Mapping[str, Any]:
        """Minimizer options for restraints and frozen atoms, the same in all conformations."""
        return {} if self.spec.each is None else self.spec.each(self.conformations.atoms)

    @property
    def target(self) -> Path | None:
        """File for all conformations."""
        return Path(self.spec.output) if self.spec.output else None

    @cached_property
    def minimizer(self) -> Minimizer:
        return Minimizer(self.conformations.atoms, **self.spec.options, **self.held)

    def __getstate__(self) -> dict[str, Any]:
        return {"spec": self.spec, "what": self.what, "frames": self.frames, "watch": None}

    def facts(self) -> dict[str, object]:
        """Return the device as a fact of records."""
        return self.spec.facts()

    def settings(self) -> dict[str, str]:
        """Return the settings that results depend on as text, for the journal."""
        found = self.spec.settings()
        if self.frames is None:
            return found | {"models": "all"}
        if isinstance(self.frames, Frames):
            return found | {"trajectory": self.conformations.sha256}
        names = {"paths": "trajectory", "words": "frames"}
        given = {names.get(name, name): value for name, value in vars(self.frames).items()}
        return found | {name: setting_text(name, value) for name, value in given.items() if value}

    def compute(self, part: range, /) -> list[_Found]:
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
        """Create the record of a minimized conformation, with findings about its initial positions."""
        atoms, sha256 = self.conformations.atoms, self.conformations.sha256
        try:
            values = facts_of_model(result, atoms.moved(start), self.spec.strict, self.target)
        except InputError as error:  # a finding with `strict`
            return Record.failed_by(error, name, sha256), None
        found = result if self.target is None else result.positions
        return Record(name, sha256, {**values, **self.facts()}), found

    def _batch(self, positions: Positions) -> MinimizeBatch:
        if isinstance(self.spec.held, Held) and self.spec.held.to_starts:
            return self._restrained(positions)
        return self.minimizer.minimize_batch(positions, errors="record", watch=self.watch)

    def _restrained(self, positions: Positions) -> MinimizeBatch:
        """Minimize conformations (m, n, 3) A, each restrained to its initial positions."""
        molecules: dict[int, Atoms] = {}
        reasons: dict[int, str] = {}
        for k, own in enumerate(positions):
            try:
                molecules[k] = self.conformations.atoms.moved(own)
            except InputError as error:
                reasons[k] = str(error)
        batch = minimize_all(
            list(molecules.values()), lambda _: self.held, "record", None, self.watch, self.spec.options
        )  # fmt: skip
        results = dict(zip(molecules, batch.results, strict=True))
        reasons |= {k: batch.errors[place] for place, k in enumerate(molecules) if place in batch.errors}
        return MinimizeBatch([results.get(k) for k in range(len(positions))], reasons, batch.seconds)

    @property
    def size_together(self) -> int:
        """Number of conformations that this process minimizes together."""
        together = ATOMS_TOGETHER.get(get_device(self.spec.options.get("device")).kind, _FEWER_ATOMS)
        return max(1, together // len(self.conformations.atoms))


def minimized_conformations(
    minimizing: Minimizing, journal: Journal, resume: bool, place: Place, watch: Watch | None
) -> MinimizeBatch:  # fmt: skip
    """Minimize all conformations, write them to one file if the spec has an output, and return their results.

    watch : called with the number of conformations done, the total number, and the largest rms gradient, kcal/mol/A
    """
    begin = perf_counter()
    with closing(minimizing.conformations), shared(minimizing, place) as done:
        found = list(_written(minimizing, done, journal, resume, watch))
        records = [record for record, _ in found]
        whole = _together(minimizing, records, perf_counter() - begin)
    loads = [_Loaded(minimizing, k, records) for k in range(len(records))]
    content = minimizing.spec.content(
        minimizing.conformations.source, minimizing.conformations.atoms, 1, None
    )  # fmt: skip
    results = [
        None if record.failed
        else replace(result, origin=Origin(content, record)) if isinstance(result, MinimizeResult)
        else result_of_record(record.result, load, Origin(content, record))
        for load, (record, result) in zip(loads, found, strict=True)
    ]  # fmt: skip
    errors = {k: record.error for k, record in enumerate(records) if record.failed}
    return MinimizeBatch(results, errors, perf_counter() - begin, records, whole)


@dataclass(frozen=True, eq=False)
class _Loaded:
    """Loads the atoms of a conformation from the common file."""

    minimizing: Minimizing
    place: int
    records: Sequence[Record]

    def __call__(self) -> Atoms:
        assert self.minimizing.target is not None
        atoms = self.minimizing.conformations.atoms
        frames = Trajectory(self.minimizing.target, atoms, image="none")
        n_failed = sum(record.failed for record in self.records[: self.place])
        place = self.place if len(frames) == len(self.records) else self.place - n_failed
        with closing(frames):
            return atoms.moved(frames.positions(range(place, place + 1))[0])


def _together(minimizing: Minimizing, records: Sequence[Record], seconds: float) -> Record:
    """Create the record of the molecule, with an entry for each conformation."""
    conformations, spec = minimizing.conformations, minimizing.spec
    kind: Kind = "model" if minimizing.frames is None else "frame"
    own = ({name: value for name, value in record.result.items() if name != "device"} for record in records)
    results = ((record.error or values) for record, values in zip(records, own, strict=True))
    result = {
        **facts_of_molecule(conformations.atoms, spec.options),
        "device": device_of(records, spec),
        **entries(kind, zip(conformations.numbers, results, strict=True)),
        "findings": [],
        **notes_of(conformations.atoms),
        "seconds": {"total": seconds},
    }
    source = conformations.source
    return Record("" if source is None else str(source), "" if source is None else source.sha256, result)


def device_of(records: Sequence[Record], spec: MinimizeSpec) -> str:
    """Names of the devices that computed records; if there are none, of the chosen device."""
    devices = dict.fromkeys(str(record["device"]) for record in records if "device" in record)
    return ", ".join(devices) or str(spec.facts()["device"])


def _written(
    minimizing: Minimizing, done: Shared[range, list[_Found]], journal: Journal, resume: bool, watch: Watch | None
) -> Iterator[_Found]:  # fmt: skip
    """Compute conformations, write them and add them to the journal as they finish; yield records and results.

    The file is begun with the first successful conformation, so that a run in which all fail keeps an earlier file.
    """
    conformations, n = minimizing.conformations, len(minimizing.conformations)
    target = minimizing.target
    content = minimizing.spec.content(conformations.source, conformations.atoms, n, None)
    layout = None if target is None else layout_of(target, content)
    with journal:
        earlier = list(journal.resume().values()) if resume else []
        _require_first(earlier, conformations, journal.path)
        yield from ((record, None) for record in earlier)
        if watch is not None:
            watch(len(earlier), n, 0.0)
        size = _size_for_workers(conformations) if done.is_remote else minimizing.size_together
        parts = list(_ranges(len(earlier), n, size))
        numbered = _numbered(minimizing, parts, done, watch)
        first = [] if earlier else _to_first_done(numbered)
        if first and first[-1][1][0].failed:
            yield from (found for _, found in first)
            return
        if target is None or layout is None:
            yield from (found for _, found in chain(first, numbered))
            return
        journal.begin()
        sizes = [record.more[SIZE] for record in earlier if SIZE in record.more]
        with ConformationFile(target, layout, sizes[-1] if sizes else None) as file:
            for number, (record, result) in chain(first, numbered):
                file.append(number, result.positions if isinstance(result, MinimizeResult) else result)
                journal.add(replace(record, more={SIZE: file.size}))
                yield record, None  # results may not fit into memory
            file.finish()


def _require_first(records: Sequence[Record], conformations: Conformations, path: Path | None) -> None:
    """Raise FormatError unless the records of an earlier run belong to the first of these conformations."""
    wanted = [(name, conformations.sha256) for name in conformations.names[: len(records)]]
    if [(record.structure, record.sha256) for record in records] != wanted:
        raise FormatError(f"{path}: belongs to other conformations; start again without `resume=True`")


def _numbered(
    minimizing: Minimizing, parts: list[range], done: Shared[range, list[_Found]], watch: Watch | None
) -> Iterator[_Numbered]:  # fmt: skip
    """Number the conformations, and report progress."""
    n = len(minimizing.conformations)
    for part, found in zip(parts, done.results(_watched(minimizing, parts, done, watch)), strict=True):
        yield from zip((place + 1 for place in part), found, strict=True)
        if watch is not None:
            watch(part.stop, n, 0.0)


def _watched(
    minimizing: Minimizing, parts: list[range], done: Shared[range, list[_Found]], watch: Watch | None
) -> Iterator[range]:  # fmt: skip
    """Yield the parts; set `minimizing.watch` for those minimized in this process."""
    n = len(minimizing.conformations)
    for part in parts:
        if watch is not None and not done.is_remote:
            minimizing.watch = _Shifted(watch, part.start, n)
        yield part


@dataclass(frozen=True)
class _Shifted:
    """Reports progress of a part that begins at structure `first` as progress of the whole."""

    watch: Watch
    first: int
    n: int

    def __call__(self, n_done: int, _: int, gradient: float) -> None:
        self.watch(self.first + n_done, self.n, gradient)


def _to_first_done(numbered: Iterator[_Numbered]) -> list[_Numbered]:
    """Take conformations up to the first successful one, or all."""
    found = list[_Numbered]()
    for number, (record, result) in numbered:
        found.append((number, (record, result)))
        if not record.failed:
            break
    return found


def _size_for_workers(conformations: Conformations) -> int:
    """Number of conformations that a worker minimizes together, independent of the number of workers."""
    most = max(1, PIECE_ATOMS // len(conformations.atoms))
    return max(1, min(-(-len(conformations) // _LEAST_RANGES), most))


def _ranges(first: int, end: int, size: int) -> Iterator[range]:
    """Divide indices `first` to `end` into ranges that end at multiples of `size`."""
    while first < end:
        part = range(first, min(end, (first // size + 1) * size))
        yield part
        first = part.stop
