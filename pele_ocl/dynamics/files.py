"""Output files of simulations: trajectories, energy tables, structures and checkpoints."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ..atoms import Atoms, Floats
from ..common.errors import FormatError, InputError
from ..common.notes import note
from ..common.writing import appending, replacing
from ..ensemble import Ensemble
from ..formats.conformation_files import (
    CONFORMATION_FORMATS,
    INTERVAL,
    ConformationFile,
    ConformationFormat,
    Content,
    layout_of,
    write_conformation,
)
from ..jobs.journal import make_folder
from ..jobs.outputs import held_already, remove_run
from ..minimize import MinimizeBatch
from ..results import Terms
from .amounts import notes_of_reports
from .integrators import INTEGRATORS
from .settings import Settings

CHECKPOINT = "checkpoint.npz"
PARTS = "parts"  # folder for tables and checkpoints of parts
COLUMNS = (
    "step", "time_ps", "structure", "replica", "bath_K", "rung", "potential_kcal_mol", "kinetic_kcal_mol",
    "total_kcal_mol", "temperature_K", "restraints_kcal_mol", "frame", "error",
)  # fmt: skip
_BEFORE_TERMS = COLUMNS.index("frame")
_FRAMES = "frames from 0"  # stored in checkpoints; earlier versions counted from 1
_STEPS = 3  # index of the number of steps in the stored settings
TABLES = ("energies.csv", "energies.jsonl")
TRAJECTORIES = (  # trajectory formats
    *(suffix[1:] for suffix, form in CONFORMATION_FORMATS.items() if not form.holds_one), "none",
)  # fmt: skip
_STEMS = {  # of trajectories, as named by SimulationFiles; True for those of temperatures
    True: re.compile(r"(.+)-(\d{4,}-\d{3,})-\d+\.\d\dK"), False: re.compile(r"(.+)-(\d{5,})"),
}  # fmt: skip
TRAJECTORIES_OF = ("replica", "temperature")
_PART = re.compile(r"\d{5,}-\d{5,}")  # folder of a part: its first and last replica
_SHARE = 50  # time between checkpoints, in multiples of the time to write one
Row = dict[str, Any]
Labels = Mapping[str, Sequence[str]]  # names of collective variables, by the name of the bias
Array = np.ndarray[Any, Any]


class Recorded(Protocol):
    """The part of the Simulation interface that is used to write files."""

    ensemble: Ensemble
    settings: Settings
    replicas: list[int]
    notes: tuple[str, ...]

    @property
    def steps(self) -> int: ...
    @property
    def time(self) -> float: ...
    @property
    def positions(self) -> Any: ...
    @property
    def potential_energies(self) -> Floats: ...
    @property
    def kinetic_energies(self) -> Floats: ...
    @property
    def kinetic_temperatures(self) -> Floats: ...
    @property
    def restraint_energies(self) -> Floats | None: ...
    def variables(self, name: str) -> Floats: ...
    @property
    def term_energies(self) -> Terms: ...
    @property
    def velocities(self) -> Any: ...
    @property
    def temperatures(self) -> Floats: ...
    @property
    def rungs(self) -> Array: ...
    @property
    def exchanges(self) -> tuple[Array, Array]: ...
    @property
    def steps_made(self) -> Array: ...
    @property
    def errors(self) -> dict[int, str]: ...
    @property
    def _goes_on(self) -> Array: ...
    def run(self, steps: int) -> Any: ...
    def minimize(self, **options: object) -> MinimizeBatch: ...
    def _call(self, call: Callable[[Any], object]) -> None: ...
    def _write_checkpoint(self, path: Path, **more: Array) -> None: ...
    def _read_checkpoint(self, path: Path) -> dict[str, Array]: ...


def names_of(structures: Sequence[Path | Atoms]) -> list[str]:
    """Return the names of structures: file names without suffixes, or `molecule` for Atoms objects.

    Raises InputError if two structures have the same name.
    """
    n_held = sum(isinstance(of, Atoms) for of in structures)
    held = iter(["molecule"] if n_held == 1 else [f"molecule-{k}" for k in range(1, n_held + 1)])
    names = [
        next(held) if isinstance(of, Atoms) else Path(of.name.removesuffix(".gz").removesuffix(".bz2")).stem
        for of in structures
    ]
    twice = next((name for k, name in enumerate(names) if name in names[:k]), None)
    if twice is not None:
        raise InputError(f"two structures are named {twice}; their files would have the same name")
    return names


def require_no_run(folder: Path) -> None:
    """Raise FormatError if the folder contains a run."""
    if any((folder / name).exists() for name in (CHECKPOINT, PARTS, *TABLES)):
        raise held_already(folder)


def remove_files(folder: Path, inputs: Sequence[Path] = ()) -> None:
    """Remove the trajectories, tables and checkpoints of a run. The tables, which name the trajectories, are last.

    Written structures are kept, because they may be inputs of the next run.

    Raises FormatError, before removing anything, if any of the files is an input.
    """
    parts = [path for path in sorted(folder.glob(f"{PARTS}/*")) if _PART.fullmatch(path.name) and path.is_dir()]
    owns, written = [*parts, folder], list[Path]()
    for own in owns:
        rows = list(_rows_in(own / TABLES[1]))
        written += _trajectories_of(folder, own / CHECKPOINT, rows)
        replicas = {row["replica"] for row in rows if any(map(_is_variable, row))}
        written += [folder / f"COLVAR.{replica}" for replica in replicas]
    tables = [own / name for own in owns for name in (CHECKPOINT, *TABLES)]
    remove_run([*written, *tables], [*parts, folder / PARTS], inputs)


def _rows_in(table: Path) -> Iterator[Row]:
    """Yield the rows of a table in JSON; other lines, such as an incomplete last one, are ignored."""
    if not table.is_file():
        return
    for line in table.read_text(encoding="utf-8", errors="replace").splitlines():
        with suppress(ValueError):
            row = json.loads(line)
            if isinstance(row, dict) and isinstance(row.get("structure"), str) and isinstance(row.get("replica"), int):
                yield row


def _trajectories_of(folder: Path, checkpoint: Path, rows: Sequence[Row]) -> list[Path]:
    """Return the trajectories in a folder that a run or part wrote; [] if its checkpoint cannot be read.

    rows : of its table
    """
    try:
        with np.load(checkpoint) as arrays:
            form, by_temperature, *_ = json.loads(str(arrays["recorded"]))
    except (OSError, ValueError, TypeError, KeyError, EOFError, zipfile.BadZipFile):
        return []
    if form not in TRAJECTORIES:
        return []
    n_rungs = 1 + max((row["rung"] for row in rows if isinstance(row.get("rung"), int)), default=0)
    known = set[tuple[str, str]]()
    for row in rows:
        name, replica = row["structure"], row["replica"]
        rung = f"{replica // n_rungs:04d}-{replica % n_rungs:03d}"
        known.add((name, rung if by_temperature else f"{replica:05d}"))
    found = ((path, _STEMS[bool(by_temperature)].fullmatch(path.stem)) for path in folder.glob(f"*.{form}"))
    return [path for path, match in found if match is not None and match.groups() in known]


def _is_variable(column: str) -> bool:
    """Return whether a column contains a collective variable, which is also written to COLVAR files."""
    return column not in COLUMNS and not column.endswith("_kcal_mol")


def columns_of(simulation: Recorded, labels: Labels) -> tuple[str, ...]:
    """Return the column names of the tables: COLUMNS, the terms of the potential energy, and collective variables."""
    terms = (f"{name}_kcal_mol" for name in simulation.ensemble.names)
    variables = dict.fromkeys(label for of in labels.values() for label in of)
    return *COLUMNS[:_BEFORE_TERMS], *terms, *variables, *COLUMNS[_BEFORE_TERMS:]


def require_velocities(form: str) -> None:
    """Raise InputError for a trajectory format without velocities."""
    having = [suffix[1:] for suffix, of in CONFORMATION_FORMATS.items() if of.takes_velocities]
    if form not in having:
        raise InputError(f"trajectories of the format {form!r} have no velocities; choose {' or '.join(having)}")


class SimulationFiles:
    """Files of a run, or of a part of it. Since there may be thousands, no file is kept open.

    own : folder of tables and checkpoint; replicas, structures : replica number and structure name of each row
    """

    def __init__(
        self, simulation: Recorded, folder: Path, own: Path, names: Sequence[str], form: str, *,
        by_temperature: bool, every: int, n_steps: int, sources: Sequence[object], minimized: int,
        velocities: bool = False, labels: Labels | None = None,
    ) -> None:  # fmt: skip
        """Set up the files. folder : for trajectories and structures; names, sources : of the structures

        n_steps : total number of steps; every : steps between reports
        form : a suffix of CONFORMATION_FORMATS without its dot, or "none"
        minimized : minimization iterations before the first step
        velocities : whether to write velocities to trajectories
        labels : names of collective variables, for columns of the tables

        Raises InputError for velocities in a format without them.
        """
        if velocities:
            require_velocities(form)
        self._labels: Labels = labels or {}
        self.columns, self._has_velocities = columns_of(simulation, self._labels), velocities
        self._folder, self.own, self._simulation, self._by_temperature = folder, own, simulation, by_temperature
        self._names, self._sources, self._every = names, sources, every
        self._n_steps, self._minimized = n_steps, minimized
        self._origin = simulation.steps  # steps before the first frame
        self._what = json.dumps([form, by_temperature, every, n_steps, minimized, self.columns, velocities, _FRAMES])
        rows = simulation.ensemble.atoms
        numbers = {id(atoms): k for k, atoms in enumerate(dict.fromkeys(rows))}
        self.structures = [names[numbers[id(atoms)]] for atoms in rows]
        first = simulation.settings.first_replica
        self.replicas = [replica + first for replica in simulation.replicas]
        self.files = [] if form == "none" else [folder / f"{stem}.{form}" for stem in self._stems()]
        self._sizes: list[int | None] = [None] * len(self.files)
        self._layouts = self._layouts_of(form, every, n_steps)
        self._table_sizes = [0] * len(TABLES)
        self._saved = -math.inf, 0.0  # time of the last checkpoint, and its duration
        self.notes: list[tuple[str, str]] = []  # (structure, sentence); also saved in checkpoints
        self._told = set[int]()  # stopped rows already in the table
        self._due = [0] * len(TABLES), set[int]()  # table sizes and _told at the last full interval

    def _stems(self) -> list[str]:
        """Return trajectory names: one for each row, or for each temperature of a ladder."""
        if not self._by_temperature:
            return [f"{name}-{k:05d}" for name, k in zip(self.structures, self.replicas, strict=True)]
        baths = self._simulation.settings.temperatures
        return [
            f"{name}-{k // len(baths):04d}-{k % len(baths):03d}-{baths[k % len(baths)]:.2f}K"
            for name, k in zip(self.structures, self.replicas, strict=True)
        ]

    def _layouts_of(self, form: str, every: int, n_steps: int) -> dict[str, ConformationFormat]:
        """Create the trajectory format of each structure."""
        if form == "none":
            return {}
        attributes = {INTERVAL: every * self._simulation.settings.dt}
        return {
            name: layout_of(
                f"{name}.{form}",
                Content(
                    self._atoms(k),
                    1 + n_steps // every,
                    name,
                    attributes=attributes,
                    has_velocities=self._has_velocities,
                ),
            )
            for k, name in enumerate(self._names)
        }

    def _atoms(self, k: int) -> Atoms:
        return list(dict.fromkeys(self._simulation.ensemble.atoms))[k]

    @property
    def made(self) -> int:
        """Number of steps made by the run."""
        return self._simulation.steps - self._origin

    def run(self, *, has_structures: bool = True, watch: Callable[[Any], None] | None = None) -> dict[str, Any]:
        """Perform the remaining steps, write all files, and return the last rows, exchanges and timings.

        A new run is first minimized, if requested.

        has_structures : whether to write the structures as PDB files
        watch : called with the simulation before its first step and after each report
        """
        simulation = self._simulation
        if not self.begin():
            self._begin_anew(has_structures)
        for structure, sentence in self.notes:
            note(f"Note: {structure}: {sentence}")
        made, first, begin = simulation.steps_made, simulation.steps, time.perf_counter()
        if watch is not None:
            simulation._call(watch)
        while self.made < self._n_steps:
            simulation.run(min(self._every - self.made % self._every, self._n_steps - self.made))
            self.record(is_last=self.made == self._n_steps)
            if watch is not None:
                simulation._call(watch)
        self._finish()
        return {
            "n_steps_made": simulation.steps - first,
            "n_replica_steps_made": int((simulation.steps_made - made).sum()),
            "seconds": {"steps": time.perf_counter() - begin},
            "steps": simulation.steps,
            "time_ps": round(simulation.time, 6),
            "device": str(simulation.ensemble.device),
            "precision": simulation.ensemble.precision,
            "dynamics": {
                **asdict(simulation.settings),
                "minimize": self._minimized,
                "cutoff": simulation.ensemble.state.options["cutoff"],
            },
            "exchanges": self._exchanges(),
            "notes": [*simulation.notes, *notes_of_reports(self._n_steps, self._every)],
            "notes_of_structures": [list(each) for each in self.notes],
            "rows": self.table(),
            "trajectories": list(map(str, self.files)),
        }

    def _finish(self) -> None:
        """Finish trajectories whose format has an end record, which a continued run removes again."""
        for path, size, structure in zip(self.files, self._sizes, self.structures, strict=False):  # no files for "none"
            layout = self._layouts[structure]
            if size is not None and layout.end():
                with ConformationFile(path, layout, size) as file:
                    file.finish()

    def _begin_anew(self, has_structures: bool) -> None:
        """Minimize, and write the first frames."""
        if self._minimized:
            batch = self._simulation.minimize(max_iterations=self._minimized)
            self.notes += [
                (self.structures[place], f"replica {self.replicas[place]} starts without minimization: {reason}")
                for place, reason in batch.errors.items()
            ]
        if has_structures:
            self.write_structures()
        self.write_tables()
        self.record(is_last=False)

    def _exchanges(self) -> list[dict[str, Any]]:
        """Return tried and accepted exchanges between neighbouring rungs."""
        if self._simulation.settings.exchange_every is None:
            return []
        settings, (tried, accepted) = self._simulation.settings, self._simulation.exchanges
        baths = settings.temperatures
        of_two = settings.ladder_shape is not None
        return [
            {
                **({"rungs": [k, other]} if of_two else {}), "temperatures": [baths[k], baths[other]],
                "tried": int(tried[place]), "accepted": int(accepted[place]),
            }
            for place, k, other in settings.next_rungs()
        ]  # fmt: skip

    def begin(self) -> bool:
        """Create the folders, or continue an existing run. Returns whether a run was continued."""
        path = self.own / CHECKPOINT
        if path.is_file():
            self._go_on(self._simulation._read_checkpoint(path))
            return True
        for folder in (self._folder, self.own):
            make_folder(folder)
        return False

    def _go_on(self, more: dict[str, np.ndarray[Any, Any]]) -> None:
        """Truncate all files to their sizes at the checkpoint."""
        self._origin = int(more.get("origin", 0))
        self._require_same(json.loads(str(more["recorded"])))
        self._sizes = more["trajectory_sizes"].tolist()
        # An off-interval final report is removed if the run is extended; older checkpoints do not support this.
        ends_early = self.made % self._every > 0 and self._grows(json.loads(str(more["recorded"])))
        of = "due_" if ends_early and "due_told" in more else ""
        self._told = set(more[f"{of}told"].tolist())
        self.notes = json.loads(str(more["notes"]))
        self._table_sizes = more[f"{of}table_sizes"].tolist()
        self._due = list(self._table_sizes), set(self._told)
        for name, size in zip(TABLES, self._table_sizes, strict=True):
            table = self.own / name
            if not table.is_file() or table.stat().st_size < size:
                raise FormatError(f"{table}: was changed after the interrupted run; start again in another folder")
            with appending(table), open(table, "r+b") as stream:
                stream.truncate(size)

    def _grows(self, before: list[Any]) -> bool:
        return bool(json.loads(self._what)[_STEPS] > before[_STEPS])

    def _require_same(self, before: list[Any]) -> None:
        """Raise InputError if the interrupted run had other reports or files. The number of steps may increase."""
        own, made = json.loads(self._what), self.made
        steps, form = own.pop(_STEPS), own[0]
        steps_before = before.pop(_STEPS)
        if own != before:
            raise InputError(
                f"{self._folder}: the interrupted run had other reports or trajectories; give the same options"
            )
        if steps != steps_before and (steps < made or form == "h5"):
            why = "completed" if steps < made else "written; .h5 trajectories cannot be extended"
            raise InputError(
                f"{self._folder}: is a run of {steps_before:,} steps and cannot be changed to {steps:,}; {made:,} are "
                f"{why}"
            )

    def write_structures(self) -> None:
        """Write each structure as a PDB file, with the positions of its first replica, as a topology."""
        for k, (name, source) in enumerate(zip(self._names, self._sources, strict=True)):
            atoms = self._atoms(k)
            if atoms.labels is not None:
                placed = atoms.moved(self._simulation.positions[self.structures.index(name)])
                write_conformation(self._folder / f"{name}.pdb", Content(placed, 1, str(source)))

    def write_tables(self) -> None:
        """Write empty tables."""
        for k, (name, text) in enumerate(zip(TABLES, (",".join(self.columns) + "\n", ""), strict=True)):
            with replacing(self.own / name) as temporary:
                temporary.write_text(text, encoding="utf-8")
            self._table_sizes[k] = len(text)

    def record(self, *, is_last: bool) -> None:
        """Append frames and table rows for each replica, and occasionally write a checkpoint.

        An off-interval final report adds only table rows, because frames are evenly spaced in time.
        """
        rows = self.rows()
        if self.made % self._every == 0:
            self._append_frames(1 + self.made // self._every)
        lines = io.StringIO()
        writer = csv.writer(lines, lineterminator="\n")
        writer.writerows([["" if row[name] is None else row[name] for name in self.columns] for row in rows])
        texts = lines.getvalue(), "".join(json.dumps(row, allow_nan=False) + "\n" for row in rows)
        for k, (name, text) in enumerate(zip(TABLES, texts, strict=True)):
            data = text.encode()
            with appending(self.own / name), open(self.own / name, "r+b") as stream:
                stream.seek(self._table_sizes[k])
                stream.write(data)
            self._table_sizes[k] += len(data)
        if self.made % self._every == 0:
            self._due = list(self._table_sizes), set(self._told)
        when, took = self._saved
        if is_last or time.monotonic() - when > _SHARE * took:
            self._save()

    def _save(self) -> None:
        begin, (due_sizes, due_told) = time.monotonic(), self._due
        self._simulation._write_checkpoint(
            self.own / CHECKPOINT, origin=np.array(self._origin), trajectory_sizes=np.array(self._sizes, np.int64),
            table_sizes=np.array(self._table_sizes), told=np.array(sorted(self._told), np.int64),
            due_table_sizes=np.array(due_sizes), due_told=np.array(sorted(due_told), np.int64),
            recorded=np.array(self._what), notes=np.array(json.dumps(self.notes)),
        )  # fmt: skip
        now = time.monotonic()
        self._saved = now, now - begin

    def rows(self) -> list[Row]:
        """Return table rows for running replicas, and a last row for each replica stopped since the last report."""
        rows = [row for k, row in enumerate(self.table()) if k not in self._told]
        self._told |= set(self._simulation.errors)
        return rows

    def table(self) -> list[Row]:
        """Return a row with the current state of each replica."""
        simulation = self._simulation
        potential, kinetic = simulation.potential_energies, simulation.kinetic_energies
        temperatures, baths, rungs = simulation.kinetic_temperatures, simulation.temperatures, simulation.rungs
        restraints, errors = simulation.restraint_energies, simulation.errors
        has_baths, has_rungs = (
            INTEGRATORS[simulation.settings.integrator].is_thermostat,
            simulation.settings.exchange_every is not None,
        )
        frame = self.made // self._every if self.files and self.made % self._every == 0 else None
        found, goes_on = [], simulation._goes_on
        terms = simulation.term_energies
        variables: dict[str, Floats] = {}
        for name, of in self._labels.items():
            variables |= dict(zip(of, simulation.variables(name).T, strict=True))
        for k, (structure, replica) in enumerate(zip(self.structures, self.replicas, strict=True)):
            values = (
                simulation.steps, round(simulation.time, 6), structure, replica,
                round(float(baths[k]), 4) if has_baths else None, int(rungs[k]) if has_rungs else None,
                *(_rounded(value) for value in (potential[k], kinetic[k], potential[k] + kinetic[k], temperatures[k])),
                None if restraints is None else _rounded(restraints[k]), *map(_rounded, terms.values[k]),
                *(_rounded(of[k]) for of in variables.values()), frame if goes_on[k] else None, errors.get(k),
            )  # fmt: skip
            found.append(dict(zip(self.columns, values, strict=True)))
        return found

    def _append_frames(self, number: int) -> None:
        """Append the positions of all running replicas, and their velocities if requested."""
        if not self.files:
            return
        rungs, n_rungs = self._simulation.rungs, len(self._simulation.settings.temperatures)
        positions: Sequence[Floats] = self._simulation.positions[:]
        velocities: Sequence[Floats] | None = self._simulation.velocities[:] if self._has_velocities else None
        for k in np.flatnonzero(self._simulation._goes_on).tolist():
            file = k - self.replicas[k] % n_rungs + int(rungs[k]) if self._by_temperature else k
            layout = self._layouts[self.structures[k]]
            with ConformationFile(self.files[file], layout, self._sizes[file]) as open_file:
                open_file.append(number, positions[k], None if velocities is None else velocities[k])
                self._sizes[file] = open_file.size


def _rounded(value: float) -> float | None:
    """Round an energy; None if it is not finite."""
    return round(float(value), 6) if math.isfinite(value) else None
