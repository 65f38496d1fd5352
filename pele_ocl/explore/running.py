"""Implementation of `pele_ocl.explore`: run a control file, or a part of its explorers, locally or by workers."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from threading import Event, Thread
from types import TracebackType
from typing import Any, Protocol

from ..common.arguments import callback, file_path, file_paths, instance, listed_ligands, text, whole_number
from ..common.errors import InputError, KeywordError
from ..common.inputfile import read_file
from ..common.notes import note
from ..common.variant import Progress
from ..forcefield.control import filled
from ..formats import is_structure
from ..formats.tables import folder_path
from ..jobs.launchers import LAUNCHED, device_of_rank, launched, shard_of_process
from ..jobs.shards import Place, Shard
from ..jobs.sharing import shared
from ..reading import Reading
from .control import read_simulation
from .pages import pages_of, write_pages
from .presets import DEFAULT, preset_of
from .result import ExploreResult
from .run_files import Files, Said, earlier_seed, ends_of, refuse_other_reports, require_no_run, said_of
from .spec import Exploration, ExploreWork, ForceFieldFiles, Steps

MOST_EXPLORERS = 1 << 16
FOLLOW_SECONDS = 1.0  # polling interval of the workers' journals
NO_PART = "no_part"  # error code for a process without explorers
_NAMED = 3  # number of notes about steps that are reported individually
Paths = Sequence[str | PathLike[str]]


class Watch(Protocol):
    """Interface to report the progress of explorers."""

    def tell(self, steps: Steps) -> None:
        """Report a step of explorers in this process."""

    def follow(self, parts: PartsFollowed) -> None:
        """Report the progress of workers; called periodically."""


@dataclass(frozen=True)
class Call:
    """A call of `pele_ocl.explore` with its checked arguments."""

    control: Path
    explorers: int | None
    output: Path | None
    seed: int | None
    steps: int | None
    complexes: tuple[Path, ...]
    words: Mapping[str, str]
    files: ForceFieldFiles
    precision: str
    device: Any
    resume: bool
    overwrite: bool
    place: Place
    shard: str | Shard | None
    progress: Progress | None
    watch: Watch | None
    preset: str | None
    reading: Reading

    def result(self) -> ExploreResult:
        """Run the explorers, write the pages, and return the result."""
        n, part, device = self._explorers, self._part(), self.device
        if is_structure(self.control):
            return self._of_structure().result()
        if self.preset is not None or self.reading.ligands or self.reading.ligand_template:
            raise KeywordError(
                f"{self.control}: a control file defines its ligand and its moves; leave out `preset` and "
                "`ligands`, or give a structure"
            )
        words, seed = {**self._known_words(), **self.words}, self.seed
        simulation = read_simulation(self.control, words)
        if self.resume and seed is None and simulation.seed is None:
            seed = earlier_seed(Files.of(simulation, self.output))  # it was taken from the clock
        if self.resume and self.overwrite:
            raise KeywordError("choose one of `resume` and `overwrite`")
        if not self.overwrite:
            files = Files.of(simulation, self.output, part)
            refuse_other_reports(files)
            require_no_run(files, part.part(range(1, n + 1), "explorers"), self.resume)
        if part.count > 1 and self._is_launched:
            device = device_of_rank(device, part.count)
        options: dict[str, Any] = {
            "folder": self.output, "seed": seed, "steps": self.steps, "complexes": self.complexes,
            "precision": self.precision, "parameters": self.files, "text": filled(self.control, words),
            "device": device,
        }  # fmt: skip
        if self.place.is_remote:
            run = Exploration(simulation, n, **options, here=False)
            options |= {"seed": run.seed, "device": None}  # each worker has its own device
            parts = self._by_workers(run, ExploreWork(simulation, n, options))
        else:
            run = Exploration(simulation, n, **options, part=part)
            # Even if this part is complete, other parts may not be, or the run was killed before it wrote its pages.
            lacks_pages = part.count > 1 or not all(page.exists() for page in pages_of(run))
            if not (self.resume and lacks_pages and run.is_over):
                self._here(run)
            parts = [run.files]
        journals = tuple(own.journal for own in parts)
        explored, device_name = ends_of(journals)
        said = said_of(journals)
        _tell(said)
        return ExploreResult(
            self.control, read_file(self.control).sha256, run.seed, run.groups[0].atoms, run.model, run.precision,
            device_name, run.files, journals, tuple(write_pages(run)), explored, said, tuple(run.notes),
        )  # fmt: skip

    def _of_structure(self) -> Call:
        """Write the control file for a structure and its ligand, and return the call that runs it."""
        from .preparing import prepare_run

        if self.complexes:
            raise KeywordError("`complexes` need a control file; give one structure, or the control file")
        folder = self.output or Path(f"{self.control.name.split('.')[0]}_explore")
        preset = preset_of(self.preset or DEFAULT)
        made = prepare_run(self.control, folder, preset, self.reading, self.seed, self.steps, self._explorers)
        files = replace(self.files, pele_data=(*self.files.pele_data, made.data))
        return replace(
            self, control=made.control, output=folder, complexes=made.starts, files=files, preset=None,
            reading=Reading(),
        )  # fmt: skip

    @property
    def _explorers(self) -> int:
        """Total number of explorers; with mpirun or srun the default is one per process except the first."""
        return self.explorers or max(launched()[1] - 1, 1)

    @property
    def _is_launched(self) -> bool:
        return isinstance(self.shard, str) and self.shard.startswith(LAUNCHED)

    def _part(self) -> Shard:
        """Return the part of the explorers that this process runs.

        Raises InputError if it has none, such as a surplus MPI process.
        """
        if self.shard is not None and self.place.is_remote:
            raise KeywordError("choose one of `shard`, `workers` and `scheduler`")
        if isinstance(self.shard, Shard):
            return self.shard
        if self.shard is not None and not self._is_launched:
            return Shard.of(text("shard", self.shard))
        part = shard_of_process(self.shard or f"{LAUNCHED}/1", self._explorers)
        if part is None:
            raise InputError("this process has no explorers, because others have all of them", code=NO_PART)
        return part

    def _known_words(self) -> dict[str, str]:
        """Return values of template $WORDS that are determined by the arguments."""
        words = {"REPORT_NAME": "report", "TRAJECTORY_NAME": "trajectory.pdb", "TRAJ_NAME": "trajectory.pdb"}
        words |= {} if self.output is None else {"OUTPUT_PATH": str(self.output)}
        words |= {} if self.seed is None else {"SEED": str(self.seed)}
        words |= {} if self.steps is None else {"PELE_STEPS": str(self.steps)}
        return words

    def _here(self, run: Exploration) -> None:
        """Run all steps in this process."""
        told = set[str]()
        for k, steps in enumerate(run.run(self.resume)):
            for sentence in run.notes if k == 0 else ():
                note(f"Note: {sentence}")
            if self.watch is not None:
                self.watch.tell(steps)
            self._tell_share((len(run.done) + steps.step / max(1, steps.n_steps)) / len(run.groups))
            for number, why in steps.failures.items():
                if why not in told:
                    told.add(why)
                    note(f"Note: explorer {number}, step {steps.step}: {why}")

    def _by_workers(self, run: Exploration, work: ExploreWork) -> list[Files]:
        """Run one part on each worker, and return the files of the parts. Notes of the parts are added to `run`."""
        with shared(work, self.place) as done:
            files = run.files.parts(min(done.n_workers, len(run.numbers)))
            if not self.resume:
                run.begin_anew(files)
            parts = PartsFollowed([of.journal for of in files], run.n_steps, len(run.numbers), len(run.groups))
            with parts.followed(self._follow):
                for notes in done.results([own.part for own in files]):
                    run.notes = tuple(dict.fromkeys((*run.notes, *notes)))
        for sentence in run.notes:
            note(f"Note: {sentence}")
        return files

    def _follow(self, parts: PartsFollowed) -> None:
        if self.watch is not None:
            self.watch.follow(parts)
        self._tell_share(parts.share)

    def _tell_share(self, share: float) -> None:
        if self.progress is not None:
            self.progress(min(1.0, share))


class PartsFollowed:
    """Progress of workers, measured by the number of steps in their journals.

    n_steps : steps of each explorer; explorers, molecules : their numbers in all parts
    share : fraction of all steps that are done; first : this fraction at the start, -1 before the first reading
    """

    def __init__(self, journals: Sequence[Path], n_steps: int, explorers: int, molecules: int = 1) -> None:
        self.n_steps, self.explorers, self.molecules = n_steps, explorers, molecules
        self._read, self._lines = dict.fromkeys(journals, 0), dict.fromkeys(journals, 0)
        self.share, self.first = 0.0, -1.0

    def look(self) -> float:
        """Read new lines of the journals; return the fraction of all steps that are done."""
        for path, place in self._read.items():
            with suppress(OSError), path.open("rb") as file:  # it may not exist yet
                if os.fstat(file.fileno()).st_size < place:  # the journal was restarted
                    place = self._lines[path] = 0
                file.seek(place)
                added = file.read()
                self._read[path], self._lines[path] = place + len(added), self._lines[path] + added.count(b"\n")
        done = (max(0, lines - 2) for lines in self._lines.values())  # without the header and the initial states
        self.share = min(1.0, sum(done) / (len(self._read) * max(1, self.n_steps * self.molecules)))
        self.first = self.share if self.first < 0 else self.first
        return self.share

    def followed(self, tell: Callable[[PartsFollowed], None]) -> AbstractContextManager[None]:
        """Return a context that periodically updates the progress and calls `tell`."""
        return _Following(self, tell)


class _Following(AbstractContextManager[None]):
    def __init__(self, parts: PartsFollowed, tell: Callable[[PartsFollowed], None]) -> None:
        self._parts, self._tell, self._is_over = parts, tell, Event()
        self._thread = Thread(target=self._follow, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over.set()
        self._thread.join()

    def _follow(self) -> None:
        while not self._is_over.wait(FOLLOW_SECONDS):
            self._parts.look()
            self._tell(self._parts)


def _tell(said: Mapping[int, Said]) -> None:
    """Report the notes about explorers, most frequent first."""
    counts = Counter[str]()
    for own in said.values():
        counts.update({sentence: len(steps) for sentence, steps in own.notes.items()})
    for sentence, n in counts.most_common(_NAMED):
        note(f"Note: {sentence}, in {n:,} step{'' if n == 1 else 's'}")
    if len(counts) > _NAMED:
        note(f"Note: {len(counts) - _NAMED:,} more notes about steps are in the journal and in the record of the run")


def call_of(
    control: str | PathLike[str], *, explorers: int | None, output: str | PathLike[str] | None, seed: int | None,
    steps: int | None, complexes: Paths, words: Mapping[str, str] | None, templates: Paths, obc: Paths,
    pele_data: Paths, guess_radii: bool, precision: str, device: Any, resume: bool, overwrite: bool,
    workers: int | None, scheduler: str | None, shard: str | Shard | None, progress: Progress | None,
    watch: Watch | None, preset: str | None, ligand: Mapping[str, Any],
) -> Call:  # fmt: skip
    """Check the arguments of `pele_ocl.explore`. ligand : fields of Reading

    Raises InputError for invalid arguments.
    """
    if explorers is not None:
        whole_number("explorers", explorers, least=1, most=MOST_EXPLORERS)
    if seed is not None:
        whole_number("seed", seed)
    if steps is not None:
        whole_number("steps", steps)
    callback("progress", progress)

    def listed(name: str, paths: Paths | str | PathLike[str]) -> tuple[Path, ...]:
        several = (paths,) if isinstance(paths, str | PathLike) else file_paths(name, paths)
        return tuple(map(Path, several))

    given = instance("set", {} if words is None else words, dict, "a dictionary of texts by word")
    files = ForceFieldFiles(
        listed("templates", templates), listed("obc", obc), listed("pele_data", pele_data), guess_radii
    )
    texts = {str(word): str(of) for word, of in given.items()}
    folder = None if output is None else folder_path(file_path(output, "output"), "the reports")
    if preset is not None:
        preset_of(preset)
    ligand = {**ligand, "ligands": listed_ligands(ligand["ligands"])}
    several = {name: tuple(of) for name, of in ligand.items() if isinstance(of, Iterable) and not isinstance(of, str)}
    reading = Reading(
        templates=files.templates, obc=files.obc, pele_data=files.pele_data, guess_radii=files.fallback,
        **{**ligand, **several},
    )  # fmt: skip
    return Call(
        file_path(control, "control"), explorers, folder, seed, steps, listed("complexes", complexes), texts, files,
        precision, device, resume, overwrite, Place(workers, scheduler, device), shard, progress, watch, preset,
        reading,
    )  # fmt: skip
