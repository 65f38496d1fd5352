"""Results of explorations: final states of the explorers, reports and files."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ..atoms import Atoms
from ..common.errors import FormatError, Suggests
from ..common.notes import as_json
from ..formats.tables import folder_path
from ..gb_models.solvent_model import SolventModel
from ..jobs.facts import composition_as_json, settings
from ..jobs.records import Record
from ..jobs.texts import duration, physics_lines
from ..report import Column, Report, Reported, text_table
from .reports import HEADS, numbered, read_report
from .run_files import Files, Said

_SHOWN = 12  # number of explorers in the text summary


@dataclass(frozen=True, eq=False, repr=False)
class ExploreResult(Reported, Suggests):
    """Result of a run of a control file.

    control, sha256 : path of the control file, and its hash; seed : seed of the random numbers
    atoms : atoms of the first complex; model : solvent model; precision, device : used by the explorers
    files : output paths, without the explorers' numbers; journals, pages : paths of journals and HTML pages
    explorers : a dict for each explorer: explorer (its number from 1), steps, accepted, energy (kcal/mol), metrics
    said : messages about explorers, by number; notes : messages about the input

    >>> result = pele_ocl.explore("pele.conf", steps=1, output="out3")
    >>> result.numbers, [path.name for path in result.trajectories]
    ([1], ['trajectory_1.pdb'])
    >>> result.save("copy")
    """

    control: Path
    sha256: str
    seed: int
    atoms: Atoms
    model: SolventModel
    precision: str
    device: str
    files: Files
    journals: tuple[Path, ...]
    pages: tuple[Path, ...]
    explorers: list[dict[str, Any]]
    said: Mapping[int, Said]
    notes: tuple[str, ...]

    @property
    def numbers(self) -> list[int]:
        """Numbers of the explorers."""
        return [int(own["explorer"]) for own in self.explorers]

    @property
    def trajectories(self) -> list[Path]:
        """Path of each explorer's trajectory."""
        return [numbered(self.files.trajectory, number) for number in self.numbers]

    @property
    def reports(self) -> list[Path]:
        """Path of each explorer's report."""
        return [numbered(self.files.report, number) for number in self.numbers]

    def table(self) -> Report:
        """Return a table of the explorers' last states, lowest energy first: steps, accepted steps, energy, metrics.

        Missing metrics are masked.
        """
        rows = sorted(self.explorers, key=lambda own: (own["energy"], own["explorer"]))
        columns: dict[str, Any] = {name: [own[name] for own in rows] for name in ("explorer", "steps", "accepted")}
        columns["energy"] = Column([own["energy"] for own in rows], "kcal/mol", ".6g")
        for name in rows[0]["metrics"] if rows else ():
            values = np.array([np.nan if (v := own["metrics"].get(name)) is None else v for own in rows], float)
            columns[name] = Column(np.ma.masked_invalid(values), form=".6g", head=name)
        return Report(f"Explorers of {self.control.name}", columns, self._facts())

    def states(self) -> Report:
        """Read the reports: a row for the initial state and each accepted step of each explorer.

        The columns are the explorer's number, followed by those of PELE: task, step, accepted steps, energy in
        kcal/mol, metrics.
        """
        names, rows = list[str](), list[list[float]]()
        for number, path in zip(self.numbers, self.reports, strict=True):
            report = read_report(path)
            names = list(report.names)
            rows += [[number, *map(float, row)] for row in report.rows]
        values = np.array(rows).reshape(len(rows), 1 + len(names))
        columns: dict[str, Any] = {"explorer": values[:, 0].astype(np.int64)}
        for k, name in enumerate(names, 1):
            is_count = name in HEADS[:3]
            title = _TITLES.get(name, name)
            unit = "kcal/mol" if name == HEADS[3] else ""
            own = values[:, k].astype(np.int64) if is_count else values[:, k]
            columns[title] = Column(own, unit, ".6g", head=title if name not in _TITLES else "")
        return Report(f"States of {self.control.name}", columns, self._facts())

    def _facts(self) -> dict[str, Any]:
        return {"seed": self.seed, "device": self.device, "precision": self.precision, "is_search": True}

    def record(self) -> Record:
        """Build the record of the run."""
        explorers = [
            {
                **own, "failures": _with_steps(self.said.get(own["explorer"], Said()).failures),
                "notes": _with_steps(self.said.get(own["explorer"], Said()).notes),
            }
            for own in self.explorers
        ]  # fmt: skip
        result = {
            "n_atoms": len(self.atoms), "composition": composition_as_json(self.atoms), "seed": self.seed,
            "device": self.device, "precision": self.precision, "settings": settings(self.model, self.atoms),
            "is_search": True,
            "report": str(self.files.report), "trajectory": str(self.files.trajectory), "explorers": explorers,
            **as_json(self.notes),
        }  # fmt: skip
        return Record(str(self.control), self.sha256, result)

    def to_json(self) -> dict[str, Any]:
        """Return the record of the run as JSON data."""
        return self.record().to_dict()

    def save(self, path: str | PathLike[str]) -> None:
        """Copy reports, trajectories, journals and pages to a new folder.

        Raises FormatError if the folder exists or cannot be written.
        """
        target = folder_path(path)
        if target.exists():
            raise FormatError(f"{target}: already exists; choose another folder")
        of_explorers = [file for number in self.numbers for file in self.files.of_explorer(number)]
        try:
            target.mkdir(parents=True)
            for file in (*of_explorers, *self.journals, *self.pages):
                if file.exists():
                    shutil.copy2(file, target / file.name)
        except OSError as error:
            raise FormatError(f"{target}: cannot be written: {error.strerror or error}") from error

    def text(self, verbose: bool = False, total: float | None = None) -> str:
        """Return the text that the command prints: solvent, explorers, files; total : total seconds to report"""
        took = "" if total is None else f": total {duration(total)}"
        lines = [self.title(), *physics_lines(self.model, self.atoms), "", *self.lines()]
        return "\n".join([*lines, f"{self.precision}, on {self.device}{took}"])

    def title(self) -> str:
        """Describe the run in one line."""
        explorers = f"{len(self.explorers):,} explorer{'' if len(self.explorers) == 1 else 's'}"
        return f"{self.control}: {explorers} of {len(self.atoms):,} atoms, seed {self.seed}"

    def lines(self) -> list[str]:
        """Return a text summary: the last states with the lowest energies, and the files."""
        rows = sorted(self.explorers, key=lambda own: (own["energy"], own["explorer"]))
        columns = list(rows[0]["metrics"])
        heads = ["explorer", "accepted", "energy", *columns]
        cells = [
            [str(own["explorer"]), f"{own['accepted']} of {own['steps']}", f"{own['energy']:.6g}"]
            + [f"{value:.6g}" if value is not None else "-" for value in map(own["metrics"].get, columns)]
            for own in rows[:_SHOWN]
        ]
        taken, tried = (sum(own[name] for own in rows) for name in ("accepted", "steps"))
        lines = [
            "Last state of each explorer, lowest energy first; energies in kcal/mol, lengths in A",
            text_table(heads, cells, ">" * len(heads)),
        ]
        lines += [f"and {len(rows) - _SHOWN} more explorers"] if len(rows) > _SHOWN else []
        lines += [
            "",
            f"{taken:,} of {tried:,} steps accepted; reports are {self.files.report}_N. The walk is a search:",
        ]
        lines += ["its states are not a Boltzmann sample, and their averages are not free energies."]
        pages = "Page" if len(self.pages) == 1 else "Pages"
        return [*lines, f"{pages} with all states: {', '.join(map(str, self.pages))}"]

    def __repr__(self) -> str:
        return "\n".join([self.title(), "", *self.lines()])


_TITLES = dict(zip(HEADS, ("task", "step", "accepted", "energy"), strict=True))


def _with_steps(sentences: Mapping[str, Sequence[int]]) -> list[dict[str, object]]:
    """Return messages with their steps as JSON data."""
    return [{"text": text, "steps": list(steps)} for text, steps in sentences.items()]
