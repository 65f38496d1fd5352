"""Runs of `pele_ocl.minimize` on atoms, files and trajectories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from ..atoms import Atoms
from ..common.arguments import callback, choice, described, file_path, several_structures
from ..common.errors import InputError, KeywordError
from ..common.inputfile import read_file
from ..common.notes import note, one_line
from ..contract import of_structure, require
from ..doors import Door
from ..energy.options import Options as EnergyOptions
from ..energy.options import require_near
from ..energy.restraints import Held
from ..formats import Content, layout_of, require_table_suffix
from ..gb_models.solvent_model import SolventModel
from ..jobs.journal import Journal
from ..jobs.outputs import OutputNames, expanded, require_inputs
from ..jobs.records import Record
from ..jobs.running import run_with
from ..jobs.shards import HERE, Place, Shard
from ..jobs.targets import OutputTargets, files_of_other_run, refuse_files_of
from ..jobs.texts import UNIT, counted
from ..opencl.device import get_device
from ..reading import FirstFrame, Reading
from ..trajectories import Trajectory
from .conformations import Frames, Minimizing, OpensFrames, Watch, minimized_conformations
from .minimizer import Minimizer, minimize_all
from .options import Stopping, method_of
from .result import CONVERGED, MinimizeBatch, MinimizeResult, Origin, failed_result, result_of_record
from .spec import MinimizeSpec

MINIMIZED = "minimized structures"  # kind of journal
Path_ = str | PathLike[str]


@dataclass(frozen=True, eq=False)
class Run:
    """A call of `pele_ocl.minimize`.

    spec : how to minimize and write structures; frames : of a molecule, or None; models : "one" or "all"
    table : file for the table, or None; resume : True to continue an earlier run
    place : where to compute; shard : part of the structures, None for all
    errors : "raise" or "record"; watch : called with the number of structures done, the total number, and the largest
        rms gradient, kcal/mol/A
    """

    spec: MinimizeSpec
    frames: OpensFrames | None = None
    models: Literal["one", "all"] = "one"
    table: Path | None = None
    resume: bool = False
    place: Place = HERE
    shard: Shard | None = None
    errors: Literal["raise", "record"] = "raise"
    watch: Watch | None = None

    def __post_init__(self) -> None:
        choice("models", self.models, ("one", "all"))
        choice("errors", self.errors, ("raise", "record"))
        callback("watch", self.watch)
        if self.table is not None:
            require_table_suffix(self.table)
        if self.models == "all" and self.frames is not None:
            raise KeywordError("choose one of `models='all'` and `trajectory`")
        require_options(self.spec.options)

    @property
    def are_many(self) -> bool:
        """Whether one structure has many conformations."""
        return self.frames is not None or self.models == "all"

    def minimized(self, what: Any) -> MinimizeResult | MinimizeBatch:
        """Minimize the given structures, and write the requested files."""
        if isinstance(what, Atoms):
            found = self._atoms(what)
        elif isinstance(what, Sequence) and not isinstance(what, str) and any(isinstance(each, Atoms) for each in what):
            found = self._several_atoms(what)
        else:
            found = self._files(what)
        self._save_table(found)
        if self.spec.output or not isinstance(what, Atoms):
            tell(found.records, self.spec.options["tolerance"])
        return found

    def _atoms(self, atoms: Atoms) -> MinimizeResult | MinimizeBatch:
        if self.models == "all":
            raise KeywordError("`models='all'` reads the models of a file; give a path")
        if self.frames is not None:
            targets = self._targets([Path("atoms.pdb")], ())
            return self._conformations(atoms, targets)
        self._refuse_sharing("one structure is minimized by one process")
        require(of_structure(atoms, "noted", places_sites=True), self.spec.strict)
        self._require_written([atoms])
        held = {} if self.spec.each is None else self.spec.each(atoms)
        minimizer = Minimizer(atoms, **self.spec.options, **held)
        result = minimizer.minimize_batch(minimizer.atoms.positions[None], watch=self.watch)[0]
        origin = Origin(self.spec.content(None, minimizer.atoms, 1, None), options=self.spec.options)
        result = replace(result, origin=origin)
        if self.spec.output:
            result.save(self.spec.output)
        return result

    def _several_atoms(self, molecules: Sequence[Atoms]) -> MinimizeBatch:
        self._refuse_sharing("atoms in memory are minimized in this process; give files")
        if self.are_many or self.resume:
            raise KeywordError("`trajectory`, `models` and `resume` apply to files; give paths instead of atoms")
        self._require_written(molecules)
        batch = minimize_all(molecules, self.spec.each, self.errors, None, self.watch, self.spec.options)
        results = [
            result and replace(result, origin=Origin(self.spec.content(None, atoms, 1, None), None, self.spec.options))
            for atoms, result in zip(molecules, batch.results, strict=True)
        ]
        batch = replace(batch, results=results)
        if self.spec.output:
            batch.save(self.spec.output)
        return batch

    def _require_written(self, molecules: Sequence[Atoms]) -> None:
        """Raise FormatError if atoms cannot be written to the output, before any work."""
        if not self.spec.output:
            return
        if len(molecules) == 1:
            layout_of(self.spec.output, Content(molecules[0]))
        self._targets([Path(f"structure_{k}.pdb") for k in range(1, len(molecules) + 1)], ())
        for atoms in molecules:
            layout_of(OutputNames.of(self.spec.output).name(Path("structure.pdb")), Content(atoms))

    def _files(self, what: Any) -> MinimizeResult | MinimizeBatch:
        is_one = isinstance(what, str | PathLike)
        if not is_one and not isinstance(what, Sequence):
            raise InputError(f"the structure is {described(what)}; expected Atoms, a path or a list of these")
        paths = expanded([file_path(each) for each in ((what,) if is_one else what)])
        if self.errors == "raise":
            require_inputs(paths)
        if self.are_many:
            if len(paths) > 1:
                raise several_structures(paths)
        elif len(paths) == 1:
            self._refuse_sharing("one structure is minimized by one process")
        targets = self._targets(paths, _files_read(self.spec, self.frames))
        if self.are_many:
            return self._conformations(paths[0], targets)
        self.spec.reading.require_forcefield()
        return self._structures(paths, targets, is_one and len(paths) == 1)

    def _targets(self, paths: Sequence[Path], inputs: Sequence[Path]) -> OutputTargets | None:
        """Return the output files. Raises an error if files would be overwritten."""
        if not self.spec.output:
            if self.resume or self.shard is not None:
                raise KeywordError(f"`{'resume' if self.resume else 'shard'}` needs files of results; give `output`")
            return None
        targets = OutputTargets.planned(Path(self.spec.output), paths, self.are_many, table=self.table, inputs=inputs)
        refuse_files_of("relax", targets)
        if self.shard is not None and self.are_many:
            raise KeywordError(
                "`shard` needs structures in separate files; for frames, give each job a range as `frames` and a "
                "separate output file"
            )
        if self.shard is not None and self.table is not None:
            raise KeywordError("`pele-ocl merge` writes the table of shards from their journals; leave out `table`")
        return targets

    def _conformations(self, what: Path | Atoms, targets: OutputTargets | None) -> MinimizeBatch:
        minimizing = Minimizing(self.spec, what, self.frames)
        journal = Journal(
            None if targets is None else targets.journal, minimizing.settings(), kind=MINIMIZED, waits=True
        )  # fmt: skip
        batch = minimized_conformations(minimizing, journal, self.resume, self.place, self.watch)
        if self.errors == "raise" and batch.errors:
            k = min(batch.errors)
            raise InputError(f"{batch.records[k].structure}: {batch.errors[k]}")
        return batch

    def _structures(
        self, paths: Sequence[Path], targets: OutputTargets | None, is_one: bool
    ) -> MinimizeResult | MinimizeBatch:  # fmt: skip
        """Minimize structures with separate files; return one result or a batch."""
        wanted = list(paths if self.shard is None else self.shard.part(paths, "structures"))
        settings = self.spec.settings()
        overwritten = "" if self.resume or targets is None else files_of_other_run(targets, settings)
        path = None if targets is None else targets.journal
        own = path if self.shard is None or path is None else self.shard.path(path)
        names = list(map(str, paths))
        journal = Journal(own, settings, kind=MINIMIZED, shard=self.shard, items=names, waits=True)
        kept: dict[str, MinimizeResult] = {}
        count = _Count(len(wanted), self.watch, self.place.is_remote)
        keeps = is_one or not self.spec.output
        spec = replace(
            self.spec, watch=count.watch if self.watch else None, tell=count.begin,
            keep=(lambda item, result: kept.__setitem__(str(item), result)) if keeps else None,
        )  # fmt: skip
        records = list[Record]()
        for record in count.counted(run_with(spec, wanted, journal, self.resume, self.place, count.earlier)):
            if record.failed and self.errors == "raise":
                record.refuse()
            records.append(record)
        if overwritten and any(not record.failed for record in records):
            note(overwritten)
        results = [
            None if record.failed else kept.get(record.structure) or _loaded(record, self.spec) for record in records
        ]
        if is_one:
            (record,) = records
            return results[0] or failed_result(record.sentence, (), Origin(None, record))
        errors = {k: record.error for k, record in enumerate(records) if record.failed}
        seconds = sum(record.result["seconds"]["total"] for record in records if not record.failed)
        return MinimizeBatch(results, errors, seconds, records)

    def _save_table(self, found: MinimizeResult | MinimizeBatch) -> None:
        """Write the table, unless all structures failed for the same reason."""
        reasons = {record.error for record in found.records}
        if self.table is not None and (len(reasons) > 1 or "" in reasons):
            self.spec.provenance.save(found.table(), self.table)

    def _refuse_sharing(self, reason: str) -> None:
        given = {"workers": self.place.workers, "scheduler": self.place.scheduler, "shard": self.shard}
        for name, value in given.items():
            if value is not None:
                raise KeywordError(f"`{name}` distributes several structures, or frames; {reason}")


def described_by(
    function: Callable[..., Any], words: Mapping[str, Any], model: SolventModel | int | None, reading: Reading | None,
    what: object, trajectory: FirstFrame | None = None,
) -> tuple[SolventModel, Reading]:  # fmt: skip
    """Return the solvent model and the reading options for further keywords of a function.

    function : the public function; words : `like` and fields of SolventModel, and fields of Reading
    model : a SolventModel, or the number of the model to read; what : the structures
    trajectory : trajectory whose first frame has the positions of a topology

    Raises TypeError for unknown keywords, and InputError for keywords that exclude each other.
    """
    door = Door.of(function, words if reading is None else {**words, "reading": reading}, model)
    if reading is not None:
        return door.model, reading
    given = what if isinstance(what, list | tuple) else (what,)
    paths = expanded([Path(each) for each in given if isinstance(each, str | PathLike)])
    return door.model, replace(door.reading, solvent=door.model, structures=paths, trajectory=trajectory)


def note_unconverged(records: Sequence[Record], kind: str) -> None:
    """Note how many structures did not converge. kind : name of a structure, such as "pose\""""
    limited = sum(not record.failed and not record["converged"] for record in records)
    if limited:
        note(
            f"Note: the minimization of {counted(limited, kind)} of {len(records):,} stopped before the gradient "
            "fell below the tolerance"
        )


def require_options(options: Mapping[str, Any]) -> None:
    """Raise InputError or DeviceError for Minimizer options that are invalid for any structure."""
    Stopping.of(options)
    method_of(options.get("method", "lbfgs"), options.get("constraints"))
    require_near(options.get("cutoff"))
    EnergyOptions(True, True, False, options.get("cutoff"), options.get("one_four", "scale"))
    get_device(options.get("device")).require_precision(options.get("precision", "float32"))


def tell(records: Sequence[Record], tolerance: float) -> None:
    """Give notes about records: restored bonds, findings, limits, and rounding in files."""
    rows, n = [record.result for record in records if not record.failed], f"{len(records):,}"
    restored = sum(bool(row["restored"]) for row in rows)
    if restored:
        note(
            f"Note: {_counted(restored)} of {n} had many distorted bonds, which were restored before the first step; "
            "`bond_repair=False` disables this"
        )
    tell_findings(records)
    stopped = Counter(row["stopped_by"] for row in rows)
    for reason, sentence in _LIMITS.items():
        if stopped[reason]:
            note(f"Note: {_counted(stopped[reason])} of {n} {sentence} before the tolerance was reached")
    rounding = max((row["rounding_gradient"] for row in rows if row["stopped_by"] in CONVERGED), default=0.0)
    if rounding > tolerance:
        note(
            f"Note: positions in the file are rounded, which causes an rms gradient of about {rounding:.1g} {UNIT}/A; "
            ".cif, .rst7, .h5 and .nc files have more digits"
        )


_LIMITS = {
    "iterations": "reached `max_iterations`", "time": "reached `max_seconds`",
    "stuck": "could not be lowered any further in this precision",
}  # fmt: skip


def tell_findings(records: Sequence[Record]) -> None:
    """Give a note with the first finding about the initial structures; records have all findings."""
    found = [record for record in records if record.result.get("findings")]
    if found:
        more = f"; and {_counted(len(found) - 1)} more" if len(found) > 1 else ""
        note(f"Note: {one_line(found[0].structure)}: {found[0]['findings'][0]['text']}{more}")


def _counted(n: int) -> str:
    return f"{n:,} structure{'' if n == 1 else 's'}"


def _files_read(spec: MinimizeSpec, frames: OpensFrames | None) -> list[Path]:
    """List the files that are read in addition to the structures."""
    found = list[Path]()
    for of in (spec.reading, spec.held, frames):
        for value in vars(of).values() if of is not None and hasattr(of, "__dict__") else ():
            listed = value if isinstance(value, tuple | list) else (value,)
            found += [each for each in listed if isinstance(each, Path)]
    if isinstance(frames, Frames):
        paths = frames.trajectory.paths if isinstance(frames.trajectory, Trajectory) else frames.trajectory
        listed = paths if isinstance(paths, tuple | list) else (paths,)
        found += [Path(each) for each in (*listed, frames.topology) if isinstance(each, str | PathLike)]
    if isinstance(spec.held, Held) and spec.held.reference is not None:
        reference = spec.held.reference
        found.append(reference if isinstance(reference, Path) else reference.path)
    return found


def _loaded(record: Record, spec: MinimizeSpec) -> MinimizeResult:
    """Create a result from a record; its atoms are read from file on demand."""
    return result_of_record(record.result, _OfFile(record.structure, spec), Origin(None, record))


@dataclass(frozen=True, eq=False)
class _OfFile:
    """Atoms of a minimized structure, read from its file."""

    structure: str
    spec: MinimizeSpec

    def __call__(self) -> Atoms:
        target = self.spec.target(self.structure)
        assert target is not None
        atoms = self.spec.reading.chosen(read_file(self.structure))[0]
        frames = Trajectory(target, atoms, image="none")
        try:
            return atoms.moved(frames.positions(frames.frames[:1])[0])
        finally:
            frames.close()


@dataclass(eq=False)
class _Count:
    """Counts finished structures of a run, for a watch.

    n : number of structures; is_elsewhere : whether other processes compute, so that progress is counted by records
    """

    n: int
    tell: Watch | None
    is_elsewhere: bool
    first: int = 0
    done: int = 0

    def earlier(self, n: int) -> None:
        """Set the number of structures done by an earlier run."""
        self.first = self.done = n
        self.watch(0, self.n, 0.0)

    def begin(self, n: int) -> None:
        """Set the number of structures done by this run when the next group starts."""
        self.done = self.first + n

    def watch(self, n_done: int, _: int, gradient: float) -> None:
        if self.tell is not None:
            self.tell(self.done + n_done, self.n, gradient)

    def counted(self, records: Iterator[Record]) -> Iterator[Record]:
        """Yield the records; report each one if other processes compute."""
        for k, record in enumerate(records, 1):
            yield record
            if self.is_elsewhere and self.tell is not None:
                self.tell(k, self.n, 0.0)
