"""Results of simulations written to a folder."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ..atoms import Atoms
from ..common.errors import FormatError, Suggests
from ..common.notes import as_json, one_line
from ..formats.tables import folder_path
from ..gb_models.solvent_model import SolventModel
from ..jobs.facts import composition_as_json, settings
from ..jobs.records import Record
from ..jobs.texts import duration, figures, headline, physics_lines
from ..report import Column, Report, Reported
from .colvar import write_colvar
from .files import COLUMNS, TABLES
from .integrators import INTEGRATORS

SECONDS_A_DAY = 86_400.0
RELAXATION_TIMES = 5.0  # in units of 1 / friction, until replicas are in equilibrium with the heat bath
_ALWAYS = ("step", "time_ps", "replica", "potential_kcal_mol", "temperature_K")  # columns always printed
_SHARED = ("precision", "dynamics", "steps", "time_ps")
_OF_ALL = ("step", "time_ps", "structure")  # columns with the same value in all rows of a record
Part = Mapping[str, Any]  # result of a part of a run


@dataclass(frozen=True)
class Simulated:
    """A simulated structure: the name used for its files, and its source.

    source : path of the structure, or its name if it was not read from a file
    sha256 : hash of the file, "" without a file
    findings : findings about the structure, in JSON form
    """

    name: str
    atoms: Atoms = field(repr=False)
    source: str = ""
    sha256: str = ""
    findings: tuple[dict[str, object], ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class SimulateResult(Reported, Suggests):
    """A run of replicas in a folder.

    folder : folder with all files
    structures : the simulated structures; model : the solvent
    trajectories : files, one per replica or temperature, in the order of rows; empty if none were requested
    rows : last row of energies.csv for each replica, including stopped ones
    shared : data common to all replicas: steps, time_ps, dynamics, device, precision, notes
    exchanges : tried and accepted exchanges between neighbouring temperatures
    seconds : time for the steps; ns_per_day : for "all" and per "replica", 0 if no steps were left

    >>> path = "data/structures/trialanine.pdb"
    >>> run = pele_ocl.simulate(path, "run", replicas=2, steps=4, report_every=2, minimize=0)
    >>> run.time, [path.name for path in run.trajectories], run.topology.name
    (0.008, ['trialanine-00000.nc', 'trialanine-00001.nc'], 'trialanine.pdb')
    >>> len(run.table()["potential_kcal_mol"])
    6
    """

    folder: Path
    structures: tuple[Simulated, ...]
    model: SolventModel
    trajectories: tuple[Path, ...]
    rows: list[dict[str, Any]]
    shared: Mapping[str, Any]
    exchanges: list[dict[str, Any]]
    seconds: float
    ns_per_day: Mapping[str, float]

    @classmethod
    def of_parts(
        cls, parts: Sequence[Part], folder: Path, structures: Sequence[Simulated], model: SolventModel,
        seconds: float | None = None,
    ) -> SimulateResult:  # fmt: skip
        """Combine the results of parts. seconds : total time, None if the parts ran one after another"""
        own = [part["seconds"]["steps"] for part in parts]
        in_all = sum(own) if seconds is None else seconds
        ns = 1e-6 * parts[0]["dynamics"]["timestep"] * SECONDS_A_DAY
        made = sum(part["n_replica_steps_made"] for part in parts)
        exchanges = [dict(exchange) for exchange in parts[0]["exchanges"]]
        for part in parts[1:]:
            for exchange, more in zip(exchanges, part["exchanges"], strict=True):
                exchange["tried"] += more["tried"]
                exchange["accepted"] += more["accepted"]
        rate = {
            "all": ns * made / max(in_all, 1e-9),
            "replica": ns * sum(part["n_steps_made"] for part in parts) / max(sum(own), 1e-9),
        }
        shared = {name: parts[0][name] for name in _SHARED}
        shared["device"] = ", ".join(dict.fromkeys(part["device"] for part in parts))
        shared["notes"] = list(dict.fromkeys(sentence for part in parts for sentence in part["notes"]))
        shared["notes_of_structures"] = [pair for part in parts for pair in part["notes_of_structures"]]
        rows = [row for part in parts for row in part["rows"]]
        files = tuple(Path(path) for part in parts for path in part["trajectories"])
        return cls(folder, tuple(structures), model, files, rows, shared, exchanges, in_all, rate)

    @property
    def steps(self) -> int:
        """Number of steps made."""
        return int(self.shared["steps"])

    @property
    def time(self) -> float:
        """Simulated time, ps."""
        return float(self.shared["time_ps"])

    @property
    def topology(self) -> Path:
        """PDB file of the first structure at the start of its first replica, used as topology of trajectories."""
        return self.folder / f"{self.structures[0].name}.pdb"

    @property
    def errors(self) -> dict[int, str]:
        """Messages about stopped replicas, by index in `rows`."""
        return {k: row["error"] for k, row in enumerate(self.rows) if row["error"] is not None}

    @property
    def n_failed(self) -> int:
        """Number of stopped replicas."""
        return len(self.errors)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes about choices made."""
        return (*self.shared["notes"], *(f"{name}: {text}" for name, text in self.shared["notes_of_structures"]))

    def table(self) -> Report:
        """Return a table with a row for each replica and report, as in energies.csv: energies, temperatures, frames.

        Unknown values, e.g. of stopped replicas, are masked. With shards it is available when the last one is done. The
        printed table omits terms, frames, and constant columns.
        """
        path = self.folder / TABLES[1]
        lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
        rows = [json.loads(line) for line in lines] or self.rows
        columns: dict[str, Any] = {name: _column(name, [row[name] for row in rows]) for name in rows[0]}
        for name, of in columns.items():
            is_term = name.endswith("_kcal_mol") and name not in COLUMNS
            is_same = name not in _ALWAYS and len({row[name] for row in rows}) == 1
            columns[name] = replace(of, shown=not (is_term or is_same or name == "frame"))
        return Report(f"Replicas in {one_line(str(self.folder))}", columns, self._facts())

    def write_colvar(self, labels: Mapping[str, Sequence[str]]) -> None:
        """Write collective variables and bias energies of each replica to a file COLVAR.N in PLUMED's format.

        With shards, the last shard to finish writes the files.

        labels : names of variables, by the name of the bias
        """
        if not (self.folder / TABLES[1]).is_file():
            return
        table = self.table()
        fields = {"time": "time_ps"}
        for bias, names in labels.items():
            fields |= {name: name for name in names} | {f"{bias}.bias": f"{bias}_kcal_mol"}
        replicas = np.asarray(table["replica"])
        for replica in np.unique(replicas).tolist():
            of = {field: np.ma.filled(table[name][replicas == replica], np.nan) for field, name in fields.items()}
            write_colvar(self.folder / f"COLVAR.{replica}", of)

    def _facts(self) -> dict[str, Any]:
        return {name: self.shared[name] for name in ("device", *_SHARED)} | {"n_failed": self.n_failed}

    def records(self) -> Iterator[Record]:
        """Yield a record for each structure, with its replicas."""
        shared = self.shared
        for of in self.structures:
            rows = [row for row in self.rows if row["structure"] == of.name]
            result = {
                "n_atoms": len(of.atoms),
                "composition": composition_as_json(of.atoms),
                "device": shared["device"],
                "precision": shared["precision"],
                "settings": settings(self.model, of.atoms),
                "dynamics": shared["dynamics"],
                "folder": str(self.folder),
                "steps": shared["steps"],
                "time_ps": shared["time_ps"],
                "ns_per_day": dict(self.ns_per_day),
                "exchanges": self.exchanges,
                "replicas": [{key: value for key, value in row.items() if key not in _OF_ALL} for row in rows],
                "n_failed": sum(row["error"] is not None for row in rows),
                **as_json(
                    [
                        *of.atoms.notes,
                        *shared["notes"],
                        *(sentence for structure, sentence in shared["notes_of_structures"] if structure == of.name),
                    ]
                ),
                "findings": list(of.findings),
                "seconds": {"steps": self.seconds},
            }
            yield Record(of.source or of.name, of.sha256, result)

    def to_json(self) -> Any:
        """Return the record of the structure, or a list of records for several structures."""
        records = [record.to_dict() for record in self.records()]
        return records[0] if len(records) == 1 else records

    def save(self, path: str | PathLike[str]) -> None:
        """Copy all files of the run to another folder, which must not exist.

        Raises FormatError if it exists or cannot be written.
        """
        target = folder_path(path)
        if target.exists():
            raise FormatError(f"{target}: already exists; choose another folder")
        try:
            shutil.copytree(self.folder, target)
        except OSError as error:
            raise FormatError(f"{target}: cannot be written: {error.strerror or error}") from error

    def text(self, verbose: bool = False, total: float | None = None) -> str:
        """Return a text report with structures, solvent, and a summary of the run."""
        heads = [headline(Path(of.source).name, of.atoms) for of in self.structures]
        physics = physics_lines(self.model, self.structures[0].atoms, cutoff=self.shared["dynamics"]["cutoff"])
        return "\n".join([*heads, *physics, *self.lines()])

    def lines(self) -> list[str]:
        """Return a summary of the run, as lines."""
        shared, own = self.shared, self.shared["dynamics"]
        integrator = INTEGRATORS[own["integrator"]]
        parts = [f"{integrator.title} in steps of {own['timestep']:g} fs"]
        parts += [f"friction {own['friction']:g} 1/ps"] if integrator.is_thermostat else []
        parts += [f"constraints {own['constraints']}"] if own["constraints"] else []
        parts += [f"seed {own['seed']}"]
        lines = [f"Dynamics      {', '.join(parts)}"]
        if own["minimize"]:
            lines.append(f"Minimized     first, up to {own['minimize']:,} iterations")
        lines.append(
            f"Replicas      {len(self.rows):,}, {format(self.n_failed, ',') if self.n_failed else 'none'} stopped"
        )
        lines.append(f"Time          {shared['time_ps']:,.3f} ps in {shared['steps']:,} steps")
        lines += self._warm_up_lines()
        for of in self.structures:
            rows = [row for row in self.rows if row["structure"] == of.name and row["error"] is None]
            for bath in sorted({row["bath_K"] for row in rows}, key=lambda kelvin: kelvin or 0.0):
                lines += _means([row for row in rows if row["bath_K"] == bath], of.name)
        for between in self.exchanges:
            cold, warm = between["temperatures"]
            share = between["accepted"] / max(1, between["tried"])
            counts = f"{between['accepted']:,} of {between['tried']:,}, {share:.3f}"
            rungs = "rungs {} and {}, ".format(*between["rungs"]) if "rungs" in between else ""
            lines.append(f"Exchanges     {rungs}{cold:g} and {warm:g} K: {counts}")
        speed = self.ns_per_day
        if not speed["all"]:
            lines.append("Speed         no steps were left to run")
        else:
            lines.append(
                f"Speed         {speed_text(speed['all'], speed['replica'], len(self.rows))}; "
                f"{duration(self.seconds)} on {shared['device']}"
            )
        return [*lines, f"Written to    {one_line(str(self.folder))}"]

    @property
    def warm_up(self) -> float | None:
        """Approximate time, ps, until replicas are in equilibrium with the heat bath; None without a heat bath.

        Replicas start at the given positions, or at a minimum, with velocities at the temperature of the bath. Half of
        the kinetic energy is converted to potential energy, and is replaced by the bath within a few times 1 /
        friction.
        """
        own = self.shared["dynamics"]
        is_bath = INTEGRATORS[own["integrator"]].is_thermostat and own["friction"] and max(own["temperatures"]) > 0
        return RELAXATION_TIMES / own["friction"] if is_bath else None

    def _warm_up_lines(self) -> list[str]:
        if self.warm_up is None or self.shared["dynamics"]["anneal"]:
            return []
        start = f"Warm-up       about the first {self.warm_up:g} ps, to be excluded from averages"
        return [f"{start}: here the complete run" if self.time <= self.warm_up else start]

    def __repr__(self) -> str:
        lines = self.lines()
        return "\n".join(lines if len(lines) <= 24 else [*lines[:20], "...", *lines[-2:]])


def _column(name: str, values: Sequence[Any]) -> Column:
    """Create a column; unknown values, None, are masked."""
    unknown = np.array([value is None for value in values], bool)
    if name in ("structure", "error"):
        return Column(np.array(["" if value is None else value for value in values], str))
    filled = np.array([0 if value is None else value for value in values])
    end, unit = next(((end, unit) for end, unit in _UNITS.items() if name.endswith(end)), ("", ""))
    head = name.removesuffix(end).replace("_", " ")
    return Column(np.ma.masked_array(filled, unknown) if unknown.any() else filled, unit, head=head)


_UNITS = {"_kcal_mol": "kcal/mol", "_K": "K", "_ps": "ps"}  # by suffix of column names


def speed_text(in_all: float, of_replica: float, replicas: int) -> str:
    """Format a speed in ns/day. replicas : number of replicas; if several, the speed per replica is also shown"""
    return f"{figures(in_all, 4)} ns/day" + (f" in total, {figures(of_replica, 4)} per replica" if replicas > 1 else "")


def _means(rows: Sequence[Mapping[str, Any]], name: str) -> list[str]:
    """Format the mean over replicas of a structure. rows : of running replicas at the same temperature"""

    def mean(column: str) -> float:
        return float(sum(row[column] for row in rows)) / len(rows)

    who = f"means of {len(rows):,} replicas" if len(rows) > 1 else f"replica {rows[0]['replica']}"
    bath = "" if rows[0]["bath_K"] is None else f", heat bath {rows[0]['bath_K']:.1f} K"
    energies = [("potential", "potential_kcal_mol"), ("kinetic", "kinetic_kcal_mol")]
    if rows[0]["restraints_kcal_mol"] is not None:
        energies[:1] = [("potential, with restraints", "potential_kcal_mol"), ("restraints", "restraints_kcal_mol")]
    width = max(16, *(len(title) for title, _ in energies))
    return [
        f"At the end, {who} of {one_line(name)}",
        *(f"  {title:<{width}} {mean(column):13,.3f} kcal/mol" for title, column in energies),
        f"  {'temperature':<{width}} {mean('temperature_K'):13,.1f} K{bath}",
    ]
