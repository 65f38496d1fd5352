"""Explorers of a control file, run step by step and written as PELE writes them; an interrupted run goes on."""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Floats
from ..contract import of_structure, require
from ..errors import FormatError, InputError
from ..explore import Step
from ..explore.control import Simulation
from ..explore.control.building import MetricMaker, box_of, ligand_of
from ..explore.control.conditions import any_holds
from ..explore.control.explorers import explorer_of, restore_explorer, settings_of, state_of
from ..explore.metrics import States
from ..explore.reports import AppendedFile, numbered, report_head, report_row
from ..explore.sensors import Sensor, Sensors, changed, changing_blocks
from ..explore.trajectory import PelePdb, require_trajectory_suffix, trajectory_file
from ..forcefield import ForceField
from ..forcefield.control import beside
from ..formats import replacing
from ..formats.conformation_files import ConformationFile
from ..gb_models import GB_MODELS
from ..gb_models.radii import default_radii
from ..inputfile import read_file
from ..reading import read
from ..solvent_model import SolventModel
from ..trajectories.fingerprints import sha256_of
from .facts import settings
from .journal import Journal, make_folder, read_journal
from .records import Record

JOURNAL, STATE = "explore.jsonl", "explore.state"
REPORT, TRAJECTORY = "report", "trajectory.pdb"
STATE_SECONDS = 5.0  # at least, between states that are written down
MOST_SEED = (1 << 32) - 1
TASK = 1  # the number of the task in reports
END = "END\n"


@dataclass(frozen=True)
class ForceFieldFiles:
    """Files that structures are read with beside the control file's, as of ForceField.load."""

    templates: tuple[Path, ...] = ()
    obc: tuple[Path, ...] = ()
    pele_data: tuple[Path, ...] = ()
    fallback: bool = False


@dataclass(frozen=True)
class Steps:
    """Explorers of one molecule after a step.

    step, n_steps : the step, 0 for the initial states, and how many there are
    numbers : (n,) of the explorers; energies : (n,) kcal/mol
    tried, accepted : (n,) steps; an explorer that ended has tried fewer than `step`
    columns : names of the metrics in reports; values : (n, n_columns)
    is_new : (n,) True where this step was accepted; failures : sentences about explorers that failed in it, by number
    """

    step: int
    n_steps: int
    numbers: tuple[int, ...]
    tried: NDArray[np.int64]
    accepted: NDArray[np.int64]
    energies: Floats
    columns: tuple[str, ...]
    values: Floats
    is_new: NDArray[np.bool_]
    failures: dict[int, str]


@dataclass(frozen=True)
class Files:
    """Files of a run: paths without the explorers' numbers, None for a file that is not written."""

    report: Path
    trajectory: Path
    log: Path | None
    control: Path | None
    initial: Path | None
    final: Path | None

    @classmethod
    def of(cls, simulation: Simulation, folder: Path | None) -> Files:
        """Name the files. folder : in place of the control file's folders

        Raises FormatError if there is neither a folder nor a path of reports.
        """
        output = simulation.output
        if folder is None and not output.report_path:
            raise FormatError(f"{simulation.path}: PELE_Output names no reportPath; name a folder, by -o say")

        def place(given: str) -> Path | None:
            if not given or given == os.devnull:
                return None
            return Path(given) if folder is None else folder / Path(given).name

        report, trajectory = place(output.report_path or REPORT), place(output.trajectory_path)
        assert report is not None
        trajectory = trajectory or report.with_name(TRAJECTORY)
        require_trajectory_suffix(trajectory)
        return cls(
            report, trajectory, place(simulation.log), place(simulation.saved_control),
            place(output.initial_pdb_path), place(output.final_pdb_path),
        )  # fmt: skip

    @property
    def journal(self) -> Path:
        """Journal of the run, beside the reports."""
        return self.report.with_name(JOURNAL)

    @property
    def state(self) -> Path:
        """State of an interrupted run, beside the reports."""
        return self.report.with_name(STATE)

    def make_folders(self) -> None:
        """Make the folders of all files. Raises FormatError where that fails."""
        for path in (self.report, self.trajectory, self.log, self.control, self.initial, self.final):
            if path is not None:
                make_folder(path.parent)


class Exploration:
    """Run of a control file.

    numbers : of the explorers, from 1; model : of the solvent; notes : sentences about what was read
    groups : explorers of one molecule each; done : the last steps of the groups that ran to their end
    """

    def __init__(
        self, simulation: Simulation, explorers: int = 1, *, folder: Path | None = None, seed: int | None = None,
        steps: int | None = None, parameters: ForceFieldFiles | None = None, complexes: Sequence[Path] = (),
        precision: str = "float32", device: str | None = None, text: str = "",
        make: Callable[..., Any] = explorer_of,
    ) -> None:  # fmt: skip
        """Read the complexes, and check all that can be checked before a step.

        folder : of all that is written, in place of the control file's; complexes : in place of the control file's
        seed, steps : in place of the control file's; text : of the control file, which is saved if it asks for that
        make : makes the explorers of a molecule

        Raises FormatError and InputError for what cannot be run, and for what is not done.
        """
        simulation.require_done()
        (self.task,) = simulation.tasks
        self.simulation, self.make, self.text = simulation, make, text
        self.precision, self.device = precision, device
        self._parameters = parameters or ForceFieldFiles()
        self.n_steps = self.task.parameters.number_of_pele_steps if steps is None else steps
        own_seed = simulation.seed if seed is None else seed
        self.seed = int(time.time()) % MOST_SEED if own_seed is None else own_seed % (MOST_SEED + 1)
        self.numbers = list(range(1, explorers + 1))
        control = simulation.energies
        self.model = SolventModel.like("pele", gb=control.gb, ionic_strength=control.ionic_strength)
        self.files, self.done = Files.of(simulation, folder), list[Steps]()
        paths = list(complexes) or _single_files(simulation)
        self.sources = [paths[k % len(paths)] for k in range(explorers)]
        self.groups = self._groups()
        of_groups = (note for group in self.groups for note in (*group.atoms.notes, *group.notes))
        self.notes = (*simulation.notes, *dict.fromkeys(of_groups))

    @property
    def device_name(self) -> str:
        """Name of the device that the explorers are on."""
        return str(self.groups[0].explorers.walk.ensemble.device)

    @cached_property
    def forcefield(self) -> ForceField:
        """Force field of the complexes."""
        control, own = self.simulation.energies, self._parameters
        return ForceField.load(
            control.forcefield, default_radii(control.gb, "pele"), own.templates, own.obc,
            self.data, own.fallback or GB_MODELS[control.gb].of_surface,
            control.allow_missing_terminals,
        )  # fmt: skip

    @property
    def data(self) -> tuple[Path, ...]:
        """Folders Data and DataLocal."""
        return (*self.simulation.energies.data, *self._parameters.pele_data)

    @property
    def settings(self) -> dict[str, str]:
        """Settings by which an interrupted run is known again."""
        sources = {str(source): read_file(source).sha256 for source in set(self.sources)}
        task = replace(self.task, changes=(), exit_conditions=())
        return {
            "parameters": sha256_of([_parameters(group.atoms) for group in self.groups]),
            "control file": sha256_of(self.text or repr(task)), "complexes": sha256_of(sorted(sources.items())),
            "explorers": str(len(self.numbers)), "seed": str(self.seed), "steps": str(self.n_steps),
            "precision": self.precision, "solvent": repr(sorted(settings(self.model, self.groups[0].atoms).items())),
        }  # fmt: skip

    def run(self, resume: bool = False, state_seconds: float = STATE_SECONDS) -> Iterator[Steps]:
        """Run all steps, and give the explorers before the first and after each.

        resume : whether to go on with an earlier run of the same settings, where one was interrupted
        state_seconds : at least, between states that are written down

        Raises FormatError for a journal of other settings, and where files cannot be written; InputError for an earlier
        run that came to its end.
        """
        self.files.make_folders()
        state = self._earlier() if resume else None
        if state is None:
            self.files.state.unlink(missing_ok=True)
        self.done = [] if state is None else state["done"]
        yield from list(self.done)
        with Journal(self.files.journal, self.settings, kind="explore") as journal:
            if state is not None:
                known = {_name(g, k) for g in range(state["group"]) for k in range(self.n_steps + 1)}
                known |= {_name(state["group"], k) for k in range(state["step"] + 1)}
                journal.resume(lambda record: record.structure in known)
            journal.begin()
            for number, group in enumerate(self.groups):
                if state is not None and number < state["group"]:
                    continue
                own = state if state is not None and state["group"] == number else None
                for steps in group.run(journal, own, state_seconds):
                    yield steps
                self.done.append(steps)
        self.files.state.unlink(missing_ok=True)

    def save(self, state: dict[str, Any]) -> None:
        """Write down where the run is, in place of an earlier state; the groups that are done go with it."""
        with replacing(self.files.state) as temporary:
            temporary.write_bytes(pickle.dumps({**state, "done": self.done}))

    def _earlier(self) -> dict[str, Any] | None:
        """Read the state of an interrupted run, None if there is none.

        Raises FormatError for other settings, InputError for a run that came to its end.
        """
        path = self.files.state
        records = Journal(self.files.journal, self.settings, kind="explore").resume()
        if not path.exists():
            if len(records) > 1:  # a state is written down before the first step
                raise InputError(f"{self.files.journal}: this run came to its end; nothing is left to go on with")
            return None
        try:
            found: dict[str, Any] = pickle.loads(path.read_bytes())
        except Exception as error:  # a damaged pickle may raise anything
            raise FormatError(f"{path}: cannot be read ({error}); start anew, without --resume") from None
        return found

    def _groups(self) -> list[ExplorerGroup]:
        """Put explorers of one molecule together."""
        known: dict[Path, Atoms] = {}
        groups: list[ExplorerGroup] = []
        for number, source in zip(self.numbers, self.sources, strict=True):
            if source not in known:
                known[source] = read(read_file(source), self.forcefield)
                require(of_structure(known[source]))
            atoms = known[source]
            group = next((group for group in groups if _is_same_molecule(group.atoms, atoms)), None)
            if group is None:
                group = ExplorerGroup(self, atoms, len(groups))
                groups.append(group)
            group.numbers.append(number)
            group.sources.append(source)
            group.starts.append(atoms.positions)
        for group in groups:
            group.prepare()
        return groups


class ExplorerGroup:
    """Explorers of one molecule, a row each.

    numbers, sources, starts : of each explorer, its number, file and first positions (n_atoms, 3) A
    explorers : the Explorer of all
    """

    def __init__(self, of: Exploration, atoms: Atoms, place: int) -> None:
        self._of, self.atoms, self._place = of, atoms, place
        self.numbers: list[int] = []
        self.sources: list[Path] = []
        self.starts: list[Floats] = []

    def prepare(self) -> None:
        """Make explorers and metrics. Raises InputError for what the molecule does not have."""
        of = self._of
        maker = MetricMaker(of.simulation.path, self.atoms, of.model, of.precision, of.device)
        self._sensors = [Sensor(block, maker.make(block)) for block in of.task.metrics]
        self._boxes = [box_of(of.simulation.path, of.task.box, self.atoms.moved(start)) for start in self.starts]
        self.explorers = of.make(
            of.simulation, of.task, self.atoms, ligand_of(of.simulation, self.atoms), self.numbers,
            np.stack(self.starts), seed=of.seed, box=self._boxes[0], folders=of.data, model=of.model,
            precision=of.precision, device=of.device,
        )  # fmt: skip
        self._blocks = [changing_blocks(of.task) for _ in self.numbers]
        self.notes = [*maker.notes, *self._outside()]
        self._ended = set[int]()  # rows whose explorers met a condition to exit

    def _outside(self) -> list[str]:
        """Tell of complexes whose ligand begins outside of its box."""
        walk, found = self.explorers.walk, dict[str, None]()
        for source, start, box in zip(self.sources, self.starts, self._boxes, strict=True):
            if box is not None and not box.contains(walk.center(start)):
                found[
                    f"{source}: the ligand's centre begins outside of the box; no step is kept that leaves it there"
                ] = None
        return list(found)

    def run(self, journal: Journal, state: dict[str, Any] | None, state_seconds: float) -> Iterator[Steps]:
        """Run the steps that are left, and give the explorers after each. state : of an interrupted run"""
        of, explorers, rows = self._of, self.explorers, list(range(len(self.numbers)))
        sensors = self._now = Sensors(self._sensors, explorers.energies)
        first = 0
        with ExitStack() as stack:
            if state is not None:
                first = state["step"]
                sensors.restore(state["sensors"])
                restore_explorer(explorers, state["explorers"])
                self._blocks, self._ended = state["blocks"], state["ended"]
                self._open(stack, state["sizes"])
            else:
                sensors.measure(rows, self._states(rows, 1))
                self._open(stack, None)
                self._write(rows, 0)
                journal.add(self._record(0, np.ones(len(rows), bool), {}))
                self._save(0)
            yield self._steps(first, np.zeros(len(rows), bool), {})
            saved = time.monotonic()
            for step in range(first + 1, of.n_steps + 1):
                self._set(step)
                walking = [k for k in rows if k not in self._ended]
                if not walking:
                    break
                made = self.explorers.step(walking)
                accepted = np.zeros(len(rows), bool)
                accepted[[own.row for own in made]] = [own.accepted for own in made]
                failures = {own.explorer: own.reason for own in made if own.made and not np.isfinite(own.proposed)}
                sensors.count(walking, accepted, explorers.energies)
                new = np.flatnonzero(accepted).tolist()
                sensors.measure(new, self._states(new, step + 1))
                self._log(made)
                self._write(new, step)
                journal.add(self._record(step, accepted, failures))
                if time.monotonic() - saved >= state_seconds:
                    self._save(step)
                    saved = time.monotonic()
                yield self._steps(step, accepted, failures)
            self._save(of.n_steps)
            self._write_final()

    def _set(self, step: int) -> None:
        """Change the settings of each explorer by the conditions of the control file, or end it."""
        rows, task = list(range(len(self.numbers))), self._of.task
        self._now.draw(self._states(rows, step))
        for k in rows:
            values = self._now.of(k, step)
            if any_holds(task.exit_conditions, values):
                self._ended.add(k)
            self._blocks[k] = changed(self._blocks[k], task.changes, values)
            self.explorers.walk.settings[k] = settings_of(self._of.task, self._blocks[k], self._boxes[k])

    def _states(self, rows: Sequence[int], step: int) -> States:
        """Give the states of rows, before a step."""
        ensemble = self.explorers.walk.ensemble
        positions = np.stack([ensemble.positions[k] for k in rows]) if len(rows) else np.empty((0, len(self.atoms), 3))
        numbers = np.array([self.numbers[k] for k in rows], np.int64)
        return States(positions, numbers, np.full(len(rows), step, np.int64), self._of.seed)

    def _open(self, stack: ExitStack, sizes: list[dict[str, int]] | None) -> None:
        """Open the files of all explorers. sizes : in bytes, of an interrupted run"""
        files, of = self._of.files, self._of
        self._reports: list[AppendedFile] = []
        self._trajectories: list[ConformationFile] = []
        self._logs: list[AppendedFile] = []
        for k, number in enumerate(self.numbers):
            own = sizes[k] if sizes is not None else dict[str, int]()
            report = AppendedFile(numbered(files.report, number), report_head(self._now.columns), own.get("report"))
            trajectory = trajectory_file(
                numbered(files.trajectory, number), self.sources[k], self.atoms, own.get("trajectory")
            )
            self._reports.append(stack.enter_context(report))
            self._trajectories.append(stack.enter_context(trajectory))
            if files.log is not None:
                head = f"pele-ocl, explorer {number} of {len(of.numbers)}, seed {of.seed}: {self.sources[k]}\n"
                self._logs.append(stack.enter_context(AppendedFile(numbered(files.log, number), head, own.get("log"))))
            if sizes is None:
                if files.control is not None and of.text:
                    _write_text(numbered(files.control, number), of.text)
                if files.initial is not None:
                    self._write_structure(numbered(files.initial, number), k, self.starts[k])

    def _write(self, rows: Sequence[int], step: int) -> None:
        """Write rows of reports, and models, of explorers that accepted a step."""
        now, every = self._now, self._of.simulation.output.saving_frequency
        for k in rows:
            accepted = int(now.accepted[k])
            self._reports[k].append(report_row(TASK, step, accepted, float(now.energies[k]), now.row(k, step)))
            if accepted % every == 0:
                self._trajectories[k].append(accepted // every + 1, self.explorers.walk.ensemble.positions[k])

    def _log(self, made: Sequence[Step]) -> None:
        """Write what became of a step."""
        for own in made if self._logs else ():
            became = "accepted" if own.accepted else f"not accepted, because {own.reason}"
            moves = ", ".join(own.made) or "no move"
            self._logs[own.row].append(f"step {own.step}: {moves}; {became}; energy {own.energy:.6g}\n")

    def _save(self, step: int) -> None:
        """Write down the state after a step, in place of an earlier one."""
        sizes = [
            {"report": report.size, "trajectory": trajectory.size}
            for report, trajectory in zip(self._reports, self._trajectories, strict=True)
        ]
        for own, log in zip(sizes, self._logs, strict=False):
            own["log"] = log.size
        state = {
            "group": self._place, "step": step, "sizes": sizes, "sensors": self._now.state(), "blocks": self._blocks,
            "explorers": state_of(self.explorers), "ended": self._ended,
        }  # fmt: skip
        self._of.save(state)

    def _record(self, step: int, accepted: NDArray[np.bool_], failures: dict[int, str]) -> Record:
        """Make the journal's record of a step."""
        now = self._now
        result = {
            "step": step, "explorers": self.numbers, "is_accepted": accepted.tolist(),
            "accepted": now.accepted.tolist(), "energies": [float(f"{e:.9g}") for e in now.energies],
            "failures": {str(number): why for number, why in failures.items()},
        }  # fmt: skip
        return Record(_name(self._place, step), result=result)

    def _steps(self, step: int, accepted: NDArray[np.bool_], failures: dict[int, str]) -> Steps:
        now = self._now
        values = np.array([now.row(k, step) for k in range(len(self.numbers))]).reshape(len(self.numbers), -1)
        return Steps(
            step, self._of.n_steps, tuple(self.numbers), self.explorers.walk.steps.copy(), now.accepted.copy(),
            now.energies.copy(), tuple(now.columns), values, accepted.copy(), failures,
        )  # fmt: skip

    def _write_final(self) -> None:
        """Write the last accepted structures, if the control file asks for them."""
        files = self._of.files
        for k, number in enumerate(self.numbers):
            if files.final is not None:
                positions = self.explorers.walk.ensemble.positions[k]
                self._write_structure(numbered(files.final, number), k, positions)

    def _write_structure(self, path: Path, k: int, positions: Floats) -> None:
        _write_text(path, PelePdb(self.sources[k], self.atoms).structure(positions) + END)


def earlier_seed(files: Files) -> int | None:
    """Read the seed of an earlier run from its journal, None if there is none. Raises FormatError for another file."""
    return int(read_journal(files.journal).settings["seed"]) if files.journal.exists() else None


def _write_text(path: Path, text: str) -> None:
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _name(group: int, step: int) -> str:
    """Name the record of a step."""
    return f"step {step}" if not group else f"molecule {group + 1}, step {step}"


def _parameters(atoms: Atoms) -> list[object]:
    """List what templates give atoms: charges, Lennard-Jones parameters, and torsions."""
    found: list[object] = [np.asarray(of).tolist() for of in (atoms.charges, atoms.lj_sigma, atoms.lj_epsilon)]
    return found + ([] if atoms.bonded is None else [atoms.bonded.torsions.parameters.tolist()])


def _is_same_molecule(one: Atoms, other: Atoms) -> bool:
    """Tell if two structures are of one molecule: names, charges, bonds."""
    if one is other:
        return True
    first, second = one.labels, other.labels
    if len(one) != len(other) or first is None or second is None:
        return False
    columns = ("names", "residue_names", "residue_numbers", "insertion_codes", "chains")
    return (
        all(np.array_equal(getattr(first, name), getattr(second, name)) for name in columns)
        and np.array_equal(one.charges, other.charges)
        and np.array_equal(one.bond_pairs, other.bond_pairs)
    )


def _single_files(simulation: Simulation) -> list[Path]:
    """Find the file of each complex. Raises InputError for none, for several of one, and for one that is not there."""
    if not simulation.complexes:
        raise InputError(f"{simulation.path}: names no complex; give one or more, by --complex FILE say")
    paths = []
    for files in simulation.complexes:
        if len(files) > 1:
            raise InputError(f"{simulation.path}: a complex of {len(files)} files; put them into one file")
        path = beside(simulation.path, Path(files[0]))
        if not path.exists():
            raise InputError(f"{simulation.path}: its structure {path} is not there; put it there")
        paths.append(path)
    return paths
