"""Run the explorers of a control file step by step, and write PELE's files; interrupted runs can be continued."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Floats
from ..common.errors import FormatError, InputError
from ..common.hashing import sha256_of
from ..common.inputfile import read_file
from ..common.writing import replacing
from ..contract import of_structure, require
from ..forcefield import ForceField
from ..forcefield.control import beside
from ..forcefield.sources import data_folders
from ..formats.conformation_files import ConformationFile
from ..gb_models import GB_MODELS
from ..gb_models.solvent_model import SolventModel
from ..jobs.facts import settings
from ..jobs.journal import Journal
from ..jobs.records import Record
from ..jobs.shards import Shard
from ..reading import read
from .control import Simulation, SimulationTask
from .control.building import MetricMaker, box_of, constraint_terms, ligand_of, native_of
from .control.conditions import any_holds
from .control.explorers import (
    explorer_of,
    files_of_moves,
    moves_of,
    restore_explorer,
    settings_of,
    state_of,
)
from .explorer import Step
from .metrics import States
from .reports import AppendedFile, numbered, report_head, report_row
from .run_files import OVER, WHOLE, Files, leave_control, refuse_inputs, refuse_other_reports, remove_earlier
from .run_state import StateFile
from .sensors import Sensor, Sensors, changed, changing_blocks
from .trajectory import PelePdb, trajectory_file

STATE_SECONDS = 5.0  # minimum interval between writes of the state file
MOST_SEED = (1 << 32) - 1
_GOLDEN = 0x9E3779B9  # large and odd, so that seeds of tasks differ from those of runs with neighbouring seeds
END = "END\n"
BINDING = "Binding Energy"  # column name in reports
_ENDED = "ended before this step, because an exit condition is true"


@dataclass(frozen=True)
class ForceFieldFiles:
    """Force field files in addition to those of the control file, as in ForceField.load."""

    templates: tuple[Path, ...] = ()
    obc: tuple[Path, ...] = ()
    pele_data: tuple[Path, ...] = ()
    fallback: bool = False


@dataclass(frozen=True)
class Steps:
    """Explorers of one molecule after a step.

    step, n_steps : number of the step, 0 for the initial states, and total number of steps
    numbers : (n,) numbers of the explorers; energies : (n,) kcal/mol
    tried, accepted : (n,) numbers of steps; an explorer that has stopped has tried fewer than `step`
    columns : names of the metrics in reports; values : (n, n_columns)
    is_new : mask (n,) of the explorers that accepted this step
    failures, notes : messages about explorers that failed in this step, and about others, by explorer number
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
    notes: dict[int, list[str]]

    @property
    def lowest(self) -> dict[str, float]:
        """Lowest energy, and lowest binding energy if it is measured, kcal/mol; NaN is ignored."""
        found = {"energy": self.energies}
        if BINDING in self.columns:
            found["binding"] = self.values[:, self.columns.index(BINDING)]
        return {name: float(np.nanmin(values)) for name, values in found.items() if np.isfinite(values).any()}


class Exploration:
    """Run of a control file, or of a part of its explorers, whose files are bitwise equal to those of the whole run.

    numbers : numbers of all explorers, from 1; model : solvent model; notes : messages about the input
    tasks, lengths : tasks of the control file, in order, and the number of steps of each
    groups : groups of explorers of the same molecule; done : last Steps of each completed group
    """

    def __init__(
        self, simulation: Simulation, explorers: int = 1, *, folder: Path | None = None, seed: int | None = None,
        steps: int | None = None, parameters: ForceFieldFiles | None = None, complexes: Sequence[Path] = (),
        precision: str = "float32", device: str | None = None, text: str = "",
        make: Callable[..., Any] = explorer_of, part: Shard = WHOLE, here: bool = True,
    ) -> None:  # fmt: skip
        """Read the complexes, and check the input before the first step.

        folder : folder for all output, and complexes : structures, instead of those in the control file
        seed, steps : seed and number of steps of each task, instead of those in the control file
        text : text of the control file, which is saved if the file asks for it
        make : function that builds the explorers of a molecule
        part : part of the explorers that this object runs; here : False if other processes run them

        Raises FormatError or InputError for invalid input and unsupported features.
        """
        simulation.require_done()
        self.tasks = simulation.tasks
        self.simulation, self.make, self.text = simulation, make, text
        self.precision, self.device = precision, device
        self._parameters = parameters or ForceFieldFiles()
        self.lengths = [task.parameters.number_of_pele_steps if steps is None else steps for task in self.tasks]
        own_seed = simulation.seed if seed is None else seed
        if own_seed is None and part.count > 1:
            raise InputError(f"{simulation.path}: has no seed, but all processes need the same one; give `seed`")
        self.seed = int(time.time()) % MOST_SEED if own_seed is None else own_seed % (MOST_SEED + 1)
        self.numbers = list(range(1, explorers + 1))
        control = simulation.energies
        salt = {} if GB_MODELS[control.gb].vacuum else {"ionic_strength": control.ionic_strength}
        self.model = SolventModel.like("pele", gb=control.gb, **salt)
        self.files, self.done = Files.of(simulation, folder, part), list[Steps]()
        paths = list(complexes) or _single_files(simulation)
        self.sources = [paths[k % len(paths)] for k in range(explorers)]
        refuse_inputs(self.files, self.numbers, self.inputs)
        refuse_other_reports(self.files)
        self.groups = self._groups(part.part(self.numbers, "explorers"))
        if here:
            for group in self.groups:
                group.prepare()
        of_groups = (note for group in self.groups for note in (*group.atoms.notes, *group.notes))
        self.notes = (*simulation.notes, *dict.fromkeys(of_groups))

    @property
    def n_steps(self) -> int:
        """Total number of steps of all tasks."""
        return sum(self.lengths)

    @property
    def device_name(self) -> str:
        """Name of the explorers' device."""
        return str(self.groups[0].explorers.walk.ensemble.device)

    @property
    def is_over(self) -> bool:
        """True if an earlier run with the same settings is complete. Raises FormatError if the settings differ."""
        return OVER in Journal(self.files.journal, self.settings, kind="explore").resume()

    @cached_property
    def forcefield(self) -> ForceField:
        """Force field of the complexes. GB radii that the user's tables lack are those of the solvent model's set."""
        control, own = self.simulation.energies, self._parameters
        found = ForceField.load(
            control.forcefield, None, own.templates, own.obc,
            self.data, own.fallback or "sgb" in GB_MODELS[control.gb].parameters,
            control.allow_missing_terminals,
        )  # fmt: skip
        chosen = self.model.radii_set
        return found if chosen is None or not found.origin.rows else found._with_radii(chosen)

    @property
    def data(self) -> tuple[Path, ...]:
        """Folders Data and DataLocal; in `pele_data` also subfolders of these names."""
        return (*self.simulation.energies.data, *data_folders([Path(root) for root in self._parameters.pele_data]))

    @property
    def inputs(self) -> list[Path]:
        """Control file and complexes, without duplicates."""
        return list(dict.fromkeys([self.simulation.path, *self.sources]))

    @property
    def settings(self) -> dict[str, str]:
        """Settings that identify an interrupted run."""
        sources = {str(source): read_file(source).sha256 for source in set(self.sources)}
        tasks = [replace(task, changes=(), exit_conditions=()) for task in self.tasks]
        return {
            "parameters": sha256_of([group.atoms for group in self.groups]),
            "control file": sha256_of(self.text or repr(tasks)), "complexes": sha256_of(sorted(sources.items())),
            "other files": sha256_of([(path.name, read_file(path).sha256) for path in self._other_files]),
            "explorers": str(len(self.numbers)), "part": str(self.files.part), "seed": str(self.seed),
            "report": self.files.report.name,
            "steps": str(self.n_steps),
            "precision": self.precision, "solvent": repr(sorted(settings(self.model, self.groups[0].atoms).items())),
        }  # fmt: skip

    @property
    def _other_files(self) -> list[Path]:
        """Files read by moves and metrics of all tasks: rotamers, modes, native structures."""
        found = list[Path]()
        for task in self.tasks:
            for group in self.groups:
                ligand = np.flatnonzero(group.ligand).astype(np.int32)
                found += files_of_moves(self.simulation, task, group.atoms, ligand, self.data)
            natives = [native_of(self.simulation.path, block) for block in task.metrics if block.kind == "rmsd"]
            found += [beside(self.simulation.path, path) for path in natives]
        return list(dict.fromkeys(found))

    def run(self, resume: bool = False, state_seconds: float = STATE_SECONDS) -> Iterator[Steps]:
        """Run all steps; yield Steps before the first step and after each step.

        resume : whether to continue an interrupted run with the same settings, if there is one
        state_seconds : minimum interval between writes of the state file

        Raises FormatError for a journal with other settings and for files that cannot be written, InputError if the
        earlier run is complete.
        """
        self.files.make_folders()
        state = self._earlier() if resume else None
        if state is None:
            self.begin_anew([self.files])
        self.done = [] if state is None else state["done"]
        yield from list(self.done)
        with Journal(self.files.journal, self.settings, kind="explore") as journal:
            if state is not None:
                known = {_name(g, k) for g in range(state["group"]) for k in range(self.n_steps + 1)}
                known |= {_name(state["group"], k) for k in range(state["step"] + 1)}
                journal.resume(lambda record: record.structure in known)
            journal.begin()
            for group in self.groups:
                if state is not None and group.place < state["group"]:
                    continue
                own = state if state is not None and state["group"] == group.place else None
                for steps in group.run(journal, own, state_seconds):
                    yield steps
                self.done.append(group.now(steps.step))
            journal.add(Record(OVER, result={"explorers": self._ends(), "device": self.device_name}))
        self.files.state.unlink(missing_ok=True)

    def begin_anew(self, parts: Sequence[Files]) -> None:
        """Remove the files of an earlier run. parts : files of the parts that start from the beginning"""
        told = [remove_earlier(files, self.numbers, self.inputs) for files in parts]
        self.notes = tuple(dict.fromkeys([*self.notes, *filter(None, told)]))

    def _ends(self) -> list[dict[str, Any]]:
        """Return the final result of each explorer as JSON data, ordered by number."""
        found = [
            {
                "explorer": number, "steps": int(steps.tried[k]), "accepted": int(steps.accepted[k]),
                "energy": float(steps.energies[k]),
                "metrics": {name: _finite(x) for name, x in zip(steps.columns, steps.values[k], strict=True)},
            }
            for steps in self.done for k, number in enumerate(steps.numbers)
        ]  # fmt: skip
        return sorted(found, key=lambda own: own["explorer"])

    def save(self, state: dict[str, Any]) -> None:
        """Write the state of the run with the completed groups, replacing an earlier one."""
        StateFile(self.files.state, (Steps,)).write({**state, "done": self.done})

    def _earlier(self) -> dict[str, Any] | None:
        """Read the state of an interrupted run, None without one.

        Raises FormatError for other settings, InputError if the run is complete.
        """
        path = self.files.state
        for journal, part in self.files.journals().items():
            if part.count != self.files.part.count:
                one = "one part; continue with one process"
                several = f"{part.count:,} parts; continue with as many processes"
                raise FormatError(f"{journal}: this run was of {one if part.count == 1 else several}")
        if self.is_over:
            raise InputError(f"{self.files.journal}: this run is complete; there is nothing to continue")
        return StateFile(path, (Steps,)).read() if path.exists() else None

    def _groups(self, own: Sequence[int]) -> list[ExplorerGroup]:
        """Group the explorers of the same molecule, keeping only `own`.

        Each group uses the first complex of its molecule, whichever explorers are kept.
        """
        known: dict[Path, Atoms] = {}
        groups: list[ExplorerGroup] = []
        for number, source in zip(self.numbers, self.sources, strict=True):
            if source not in known:
                known[source] = self.model.choose_radii(read(read_file(source), self.forcefield))
                require(of_structure(known[source]), file=source)
            atoms = known[source]
            group = next((group for group in groups if _is_same_molecule(group.atoms, atoms)), None)
            if group is None:
                group = ExplorerGroup(self, atoms, len(groups))
                groups.append(group)
            if number in own:
                group.numbers.append(number)
                group.sources.append(source)
                group.starts.append(atoms.positions)
        return [group for group in groups if group.numbers]


class ExplorerGroup:
    """Explorers of the same molecule, one row per explorer.

    place : index of the molecule in the whole run, from 0
    numbers, sources, starts : number, file and initial positions (n_atoms, 3) A of each explorer
    explorers : the Explorer that runs them
    """

    def __init__(self, of: Exploration, atoms: Atoms, place: int) -> None:
        self._of, self.atoms, self.place = of, atoms, place
        self.numbers: list[int] = []
        self.sources: list[Path] = []
        self.starts: list[Floats] = []
        self.notes: list[str] = []
        self._layouts: dict[Path, PelePdb] = {}

    @cached_property
    def ligand(self) -> NDArray[np.bool_]:
        """Mask (n,) of the perturbed atoms. Raises InputError if there are none."""
        return ligand_of(self._of.simulation, self.atoms)

    def prepare(self) -> None:
        """Build the metrics of all tasks and the explorers of the first task.

        Raises InputError for atoms that the molecule lacks.
        """
        of = self._of
        self._sensors = [self._sensors_of(task) for task in of.tasks]
        for task in of.tasks[1:]:  # explorers are built when the task begins; find errors now
            moves_of(of.simulation, task, self.atoms, self.ligand, of.data)
            constraint_terms(of.simulation.path, task.constraints, self.atoms)
        columns = (name for sensors in self._sensors for name in Sensors(sensors, np.zeros(1)).columns)
        self.columns = list(dict.fromkeys(columns))
        self._tried = np.zeros(len(self.numbers), np.int64)
        self._begin(0)
        of_moves = [note for move in self.explorers.moves for note in move.notes]
        self.notes = list(dict.fromkeys([*self.notes, *of_moves, *self._outside()]))

    def _sensors_of(self, task: SimulationTask) -> list[Sensor]:
        """Build the metrics of a task."""
        of = self._of
        maker = MetricMaker(of.simulation.path, self.atoms, of.model, of.precision, of.device)
        found = [Sensor(block, maker.make(block)) for block in task.metrics]
        self.notes += maker.notes
        return found

    def _begin(self, number: int) -> None:
        """Build the explorers of a task at the initial positions. number : index of the task"""
        of, self._number = self._of, number
        self._task = task = of.tasks[number]
        self._boxes = [box_of(of.simulation.path, task.box, self.atoms.moved(start)) for start in self.starts]
        self.explorers = of.make(
            of.simulation, task, self.atoms, self.ligand, self.numbers, np.stack(self.starts),
            seed=task_seed(of.seed, number), box=self._boxes[0], folders=of.data, model=of.model,
            precision=of.precision, device=of.device,
        )  # fmt: skip
        self._blocks = [changing_blocks(task) for _ in self.numbers]
        self._ended = set[int]()  # rows of explorers that met an exit condition
        self._now = Sensors(self._sensors[number], self.explorers.energies)

    def _go_on(self) -> None:
        """Begin the next task at the current positions."""
        before, explorers, rows = self._now, self.explorers, list(range(len(self.numbers)))
        positions = explorers.walk.ensemble.positions[explorers.walk.kept(rows)]
        self._tried += explorers.walk.steps
        self._begin(self._number + 1)
        self.explorers.walk.place(rows, positions)
        self._now.go_on(before, self.explorers.energies)
        self._now.measure(rows, self._states(rows))

    def _outside(self) -> list[str]:
        """Return notes about complexes with a ligand initially outside its box."""
        walk, found = self.explorers.walk, dict[str, None]()
        for source, start, box in zip(self.sources, self.starts, self._boxes, strict=True):
            if box is not None and not box.contains(walk.center(start)):
                found[
                    f"{source}: the ligand's centre is initially outside of the box; steps that leave it there "
                    "are rejected"
                ] = None
        return list(found)

    def run(self, journal: Journal, state: dict[str, Any] | None, state_seconds: float) -> Iterator[Steps]:
        """Run the remaining steps; yield Steps after each. state : state of an interrupted run"""
        of, rows = self._of, list(range(len(self.numbers)))
        first = 0
        with ExitStack() as stack:
            if state is not None:
                first = state["step"]
                if state["task"]:
                    self._begin(state["task"])
                self._now.restore(state["sensors"])
                restore_explorer(self.explorers, state["explorers"])
                self._blocks, self._ended, self._tried = state["blocks"], state["ended"], state["tried"]
                self._open(stack, state["sizes"])
            else:
                self._now.measure(rows, self._states(rows))
                self._open(stack, None)
                self._write(rows)
                journal.add(self._record(0, np.ones(len(rows), bool), {}, {}))
                self._save(0)
            yield self._steps(first, np.zeros(len(rows), bool), {}, {})
            saved = time.monotonic()
            for number, length in enumerate(of.lengths):
                before = sum(of.lengths[:number])
                if first > before + length or number < self._number:
                    continue
                if number > self._number:
                    self._go_on()
                    self._save(before)
                for step in range(max(first, before) + 1, before + length + 1):
                    steps = self._step(journal, step)
                    if steps is None:
                        break
                    if time.monotonic() - saved >= state_seconds:
                        self._save(step)
                        saved = time.monotonic()
                    yield steps
            self._save(of.n_steps)
            self._write_final()

    def now(self, step: int) -> Steps:
        """Return the current state of the explorers after a step, without acceptances and messages."""
        return self._steps(step, np.zeros(len(self.numbers), bool), {}, {})

    def _step(self, journal: Journal, step: int) -> Steps | None:
        """Perform a step of all active explorers and write the results; None if all explorers have stopped.

        step : number of the step, from 1, counted over all tasks
        """
        ended = self._set()
        notes = {self.numbers[k]: [_ENDED] for k in ended}
        accepted = np.zeros(len(self.numbers), bool)
        walking = [k for k in range(len(self.numbers)) if k not in self._ended]
        if not walking:
            if ended:
                journal.add(self._record(step, accepted, {}, notes))
            return None
        made = self.explorers.step(walking)
        accepted[[own.row for own in made]] = [own.accepted for own in made]
        failures = {own.explorer: own.reason for own in made if own.made and not np.isfinite(own.proposed)}
        notes |= {own.explorer: list(own.notes) for own in made if own.notes}
        self._now.count(walking, accepted, self.explorers.energies)
        new = np.flatnonzero(accepted).tolist()
        self._now.measure(new, self._states(new))
        self._log(made)
        self._write(new)
        journal.add(self._record(step, accepted, failures, notes))
        return self._steps(step, accepted, failures, notes)

    @property
    def _steps_made(self) -> NDArray[np.int64]:
        """Number of steps that each explorer has made, including earlier tasks."""
        made: NDArray[np.int64] = self._tried + self.explorers.walk.steps
        return made

    def _set(self) -> list[int]:
        """Apply conditional changes and exit conditions to each explorer; return the rows that stop now."""
        rows, task, coming = list(range(len(self.numbers))), self._task, (self._steps_made + 1).tolist()
        self._now.draw(replace(self._states([]), explorers=np.array(self.numbers), steps=self._steps_made + 1))
        before = set(self._ended)
        for k in rows:
            values = self._now.of(k, coming[k])
            if any_holds(task.exit_conditions, values):
                self._ended.add(k)
            self._blocks[k] = changed(self._blocks[k], task.changes, values)
            self.explorers.walk.settings[k] = settings_of(task, self._blocks[k], self._boxes[k])
        return sorted(self._ended - before)

    def _states(self, rows: Sequence[int]) -> States:
        """Return the states of rows before their next steps."""
        ensemble = self.explorers.walk.ensemble
        positions = ensemble.positions[list(rows)] if len(rows) else np.empty((0, len(self.atoms), 3))
        numbers = np.array([self.numbers[k] for k in rows], np.int64)
        return States(positions, numbers, (self._steps_made + 1)[list(rows)], self._of.seed)

    def _row(self, k: int) -> list[float]:
        """Return the values of all columns for explorer k; NaN for columns that the task lacks."""
        values = dict(zip(self._now.columns, self._now.row(k, int(self._steps_made[k])), strict=True))
        return [values.get(name, np.nan) for name in self.columns]

    def _open(self, stack: ExitStack, sizes: list[dict[str, int]] | None) -> None:
        """Open the files of all explorers. sizes : file sizes of an interrupted run, bytes"""
        files, of = self._of.files, self._of
        self._reports: list[AppendedFile] = []
        self._trajectories: list[ConformationFile] = []
        self._logs: list[AppendedFile] = []
        for k, number in enumerate(self.numbers):
            own = sizes[k] if sizes is not None else dict[str, int]()
            report = AppendedFile(numbered(files.report, number), report_head(self.columns), own.get("report"))
            path = numbered(files.trajectory, number)
            trajectory = trajectory_file(path, self._layout(self.sources[k]), own.get("trajectory"))
            self._reports.append(stack.enter_context(report))
            self._trajectories.append(stack.enter_context(trajectory))
            if files.log is not None:
                head = f"pele-ocl, explorer {number} of {len(of.numbers)}, seed {of.seed}: {self.sources[k]}\n"
                self._logs.append(stack.enter_context(AppendedFile(numbered(files.log, number), head, own.get("log"))))
            if sizes is None:
                if number == 1 and of.text:
                    leave_control(files.report.parent, of.simulation.path, of.text, of.data)
                if files.control is not None and of.text:
                    _write_text(numbered(files.control, number), of.text)
                if files.initial is not None:
                    self._write_structure(numbered(files.initial, number), k, self.starts[k])

    def _layout(self, source: Path) -> PelePdb:
        """Return the PDB layout of structures read from a file; it is cached."""
        if source not in self._layouts:
            self._layouts[source] = PelePdb(source, self.atoms)
        return self._layouts[source]

    def _write(self, rows: Sequence[int]) -> None:
        """Write report rows and trajectory models of explorers that accepted a step."""
        now, every = self._now, self._of.simulation.output.saving_frequency
        positions = self._states(rows).positions
        for k, x in zip(rows, positions, strict=True):
            accepted = int(now.accepted[k])
            task, step = self._number + 1, int(self._steps_made[k])
            self._reports[k].append(report_row(task, step, accepted, float(now.energies[k]), self._row(k)))
            if accepted % every == 0:
                self._trajectories[k].append(accepted // every + 1, x)

    def _log(self, made: Sequence[Step]) -> None:
        """Write the outcome of a step to the logs."""
        for own in made if self._logs else ():
            became = "accepted" if own.accepted else f"not accepted, because {own.reason}"
            moves = ", ".join(own.made) or "no move"
            notes = "".join(f"; {sentence}" for sentence in own.notes)
            step = self._steps_made[own.row]
            self._logs[own.row].append(f"step {step}: {moves}; {became}; energy {own.energy:.6g}{notes}\n")

    def _save(self, step: int) -> None:
        """Save the state after a step, replacing an earlier one."""
        sizes = [
            {"report": report.size, "trajectory": trajectory.size}
            for report, trajectory in zip(self._reports, self._trajectories, strict=True)
        ]
        for own, log in zip(sizes, self._logs, strict=False):
            own["log"] = log.size
        state = {
            "group": self.place, "step": step, "sizes": sizes, "sensors": self._now.state(), "blocks": self._blocks,
            "explorers": state_of(self.explorers), "ended": self._ended, "task": self._number, "tried": self._tried,
        }  # fmt: skip
        self._of.save(state)

    def _record(
        self, step: int, accepted: NDArray[np.bool_], failures: dict[int, str], notes: dict[int, list[str]]
    ) -> Record:
        """Build the journal record of a step."""
        now = self._now
        result = {
            "step": step, "task": self._number + 1, "explorers": self.numbers, "is_accepted": accepted.tolist(),
            "accepted": now.accepted.tolist(), "energies": [float(f"{e:.9g}") for e in now.energies],
            "failures": {str(number): why for number, why in failures.items()},
            "notes": {str(number): sentences for number, sentences in notes.items()},
        }  # fmt: skip
        return Record(_name(self.place, step), result=result)

    def _steps(
        self, step: int, accepted: NDArray[np.bool_], failures: dict[int, str], notes: dict[int, list[str]]
    ) -> Steps:
        now = self._now
        values = np.array([self._row(k) for k in range(len(self.numbers))]).reshape(len(self.numbers), -1)
        return Steps(
            step, self._of.n_steps, tuple(self.numbers), self._steps_made, now.accepted.copy(),
            now.energies.copy(), tuple(self.columns), values, accepted.copy(), failures,
            notes,
        )  # fmt: skip

    def _write_final(self) -> None:
        """Write the last accepted structures if the control file asks for them."""
        files = self._of.files
        for k, number in enumerate(self.numbers):
            if files.final is not None:
                positions = self.explorers.walk.ensemble.positions[k]
                self._write_structure(numbered(files.final, number), k, positions)

    def _write_structure(self, path: Path, k: int, positions: Floats) -> None:
        _write_text(path, self._layout(self.sources[k]).structure(positions) + END)


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def task_seed(seed: int, number: int) -> int:
    """Return the seed of a task by index, so that tasks use different random numbers; task 0 uses the run's seed."""
    return (seed + number * _GOLDEN) % (MOST_SEED + 1)


def _write_text(path: Path, text: str) -> None:
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _name(group: int, step: int) -> str:
    """Return the record name of a step."""
    return f"step {step}" if not group else f"molecule {group + 1}, step {step}"


def _is_same_molecule(one: Atoms, other: Atoms) -> bool:
    """Return whether two structures have the same names, charges and bonds."""
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
    """Return the file of each complex.

    Raises InputError if there are no complexes, if one has several files, and for missing files.
    """
    if not simulation.complexes:
        raise InputError(f"{simulation.path}: has no complex; give one or more as `complexes`")
    paths = []
    for files in simulation.complexes:
        if len(files) > 1:
            raise InputError(f"{simulation.path}: a complex of {len(files)} files; put them into one file")
        path = beside(simulation.path, Path(files[0]))
        if not path.exists():
            raise InputError(
                f"{simulation.path}: its structure {path} does not exist; put it there, or give another as `complexes`"
            )
        paths.append(path)
    return paths


@dataclass(frozen=True)
class ExploreWork:
    """Work for workers that each run a part of the explorers of a control file.

    A part continues from its state file, so that steps are not repeated after a worker crashed. To start from the
    beginning, call `Exploration.begin_anew` first.

    simulation, explorers, options : arguments of Exploration
    """

    simulation: Simulation
    explorers: int
    options: Mapping[str, Any]

    def compute(self, part: Shard, /) -> tuple[str, ...]:
        """Run a part to its end, unless it is complete, and return its notes. Results are in its journal."""
        if Exploration(self.simulation, self.explorers, **self.options, part=part, here=False).is_over:
            return ()
        run = Exploration(self.simulation, self.explorers, **self.options, part=part)
        deque(run.run(resume=True), maxlen=0)
        return tuple(run.notes)

    def facts(self) -> dict[str, object]:
        """Return facts that must be equal for all workers: none besides the device, which `shared` adds."""
        return {}
