"""HTML pages of explorations: plot energies against rmsd or another metric, with clickable poses."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Floats
from ..formats import read_conformations
from ..trajectories import trajectory
from ..view.poses import Column, save_poses_page
from .reports import HEADS, numbered, read_report
from .sensors import column_of, title_of
from .spec import BINDING, Exploration

_MOST_POSES = 1_000  # per page
_ENERGY, _BINDING = HEADS[3], BINDING


def write_pages(run: Exploration) -> list[Path]:
    """Write a page for each molecule next to the reports, and return the paths."""
    pages = pages_of(run)
    for path, group in zip(pages, run.groups, strict=True):
        _write(path, run, group.atoms, np.flatnonzero(group.ligand), group.numbers)
    return pages


def pages_of(run: Exploration) -> list[Path]:
    """Return the path of each molecule's page."""
    return [run.files.page(None if len(run.groups) == 1 else place + 1) for place in range(len(run.groups))]


def _write(path: Path, run: Exploration, atoms: Atoms, ligand: NDArray[np.int64], numbers: Sequence[int]) -> None:
    """Write a page from the reports and trajectories of some explorers."""
    names, poses, values = list[str](), list[Floats](), list[Floats]()
    heads: tuple[str, ...] = ()
    for number in numbers:
        report = read_report(numbered(run.files.report, number))
        positions = _positions(numbered(run.files.trajectory, number), atoms)
        rows = report.rows[:: run.simulation.output.saving_frequency][: len(positions)]
        heads = report.names
        values.append(np.array([row[: len(heads)] for row in rows], np.float64))
        poses.append(positions[: len(rows)])
        names += [f"explorer {number}, step {row[1]}" for row in rows]
    table, positions = np.concatenate(values), np.concatenate(poses)
    lowest = heads.index(_BINDING if _BINDING in heads else _ENERGY)
    shown = _shown(table[:, lowest])
    metrics = [head for head in heads if head not in HEADS]
    tried, accepted = (table[shown, heads.index(name)] for name in HEADS[1:3])
    titles = {column_of(block): title_of(block) for task in run.tasks for block in task.metrics}
    columns = {head: Column(titles.get(head, head), table[shown, heads.index(head)]) for head in metrics}
    columns |= {
        _ENERGY: Column("energy, kcal/mol", table[shown, heads.index(_ENERGY)]),
        "Step": Column("step", tried),
        "acceptance": Column("fraction accepted so far", np.where(tried > 0, accepted / np.maximum(tried, 1), np.nan)),
    }
    save_poses_page(
        path, atoms, ligand, positions[shown], [names[k] for k in shown], columns,
        (_across(metrics), heads[lowest]),
        title=f"Explorers of {run.simulation.path.name}",
        facts=f"{len(numbers):,} explorer{'s' * (len(numbers) != 1)}, {len(table):,} accepted states, "
        f"{len(shown):,} in this page",
        about="Click a state or its row; drag to rotate the molecule, scroll to zoom. The walk is a search: its "
        "states are not a Boltzmann sample.",
    )  # fmt: skip


def _positions(path: Path, atoms: Atoms) -> Floats:
    """Read the positions of a trajectory, (m, n, 3) A."""
    if path.suffix.lower() != ".xtc":
        return read_conformations(path)[1]
    with closing(trajectory(path, atoms)) as frames:
        return np.array(frames.positions(frames.frames), np.float64)


def _shown(energies: Floats) -> NDArray[np.int64]:
    """Choose the states to show: one half with the lowest energies, the other evenly spaced."""
    if len(energies) <= _MOST_POSES:
        return np.arange(len(energies))
    lowest = np.argsort(energies, kind="stable")[: _MOST_POSES // 2]
    return np.union1d(lowest, np.linspace(0, len(energies) - 1, _MOST_POSES // 2).astype(np.int64))


def _across(metrics: Sequence[str]) -> str:
    """Choose the column of the x axis: an rmsd, else a distance, else another metric."""
    for word in ("rmsd", "dist"):
        if found := next((name for name in metrics if word in name.lower()), None):
            return found
    return next((name for name in metrics if name != _BINDING), "Step")
