"""Potential at atoms of a trajectory's frames, as a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...atoms import Atoms
from ...common.inputfile import InputFile
from ...formats import require_table_suffix, write_table
from ...jobs.facts import notes_of
from ...jobs.records import entries
from ...trajectories import FramePotentials, Trajectory, potentials_over
from ..clock import elapsed
from ..frames.run import FrameLine
from ..json_lines import exit_for_failed, say_record
from ..physics import Facts, medium_facts, medium_lines
from ..report import call_facts, composition_as_json, counted, duration, headline
from ..tables import table
from ..terminal import say

_SHOWN = 20  # atoms in the table on screen
_HEADS = ("mean", "sd", "min", "max")


def report_at_atoms(
    source: InputFile, atoms: Atoms, frames: Trajectory, select: str, outputs: tuple[Path, ...], as_json: bool,
    options: dict[str, Any],
) -> None:  # fmt: skip
    """Compute, write and report the values of all frames; exit with 1 where frames failed."""
    for output in outputs:
        require_table_suffix(output)
    with FrameLine("Potential at atoms", len(frames)) as progress:
        found = potentials_over(atoms, frames, select, progress=progress, **options)
    facts = medium_facts(atoms, options)
    names = _names(atoms, found.atoms.tolist())
    for output in outputs:
        _save(output, source, found, names)
    if as_json:
        say_record(source, {**_as_json(atoms, found, names), "settings": facts, **notes_of(atoms)})
    else:
        say(_as_text(source, atoms, found, names, facts))
    exit_for_failed("frame", found.errors, len(found.errors), len(frames))


def _names(atoms: Atoms, chosen: list[int]) -> list[str]:
    """A name for each chosen atom, with its number where names repeat."""
    labels = atoms.labels
    names = [atoms.describe(k) if labels is None else labels.atom(k) for k in chosen]
    return names if len(set(names)) == len(names) else [f"{name} {k}" for name, k in zip(names, chosen, strict=True)]


def _save(output: Path, source: InputFile, found: FramePotentials, names: list[str]) -> None:
    """A row for every frame, with a column for every atom, in HDF5 and JSON one of them all."""
    is_csv = output.suffix.lower() == ".csv"
    values: dict[str, ArrayLike] = (
        dict(zip(names, found.values.T, strict=True)) if is_csv else {"potential": found.values}
    )
    errors = np.array([" ".join(found.errors.get(int(k), "").split()) for k in found.frames])
    attributes = {
        "input": str(source), "input_sha256": source.sha256, **call_facts(), "device": found.device, "atoms": names,
        "unit": found.unit,
    }  # fmt: skip
    columns = {"frame": found.frames, **values, "error": errors}
    write_table(output, columns, dict.fromkeys(values, found.unit), attributes)


def _statistics(found: FramePotentials) -> list[tuple[float, ...]]:
    """Compute mean, standard deviation, minimum and maximum of each atom over the frames that count."""
    values = found.values[np.isfinite(found.values).all(axis=1)]
    if not len(values):
        return [(np.nan,) * len(_HEADS)] * len(found.atoms)
    columns = (values.mean(axis=0), values.std(axis=0), values.min(axis=0), values.max(axis=0))
    return list(zip(*(column.tolist() for column in columns), strict=True))


def _as_json(atoms: Atoms, found: FramePotentials, names: list[str]) -> dict[str, Any]:
    rows = zip(names, _statistics(found), strict=True)
    return {
        "n_atoms": len(atoms),
        "composition": composition_as_json(atoms),
        "device": found.device,
        "unit": found.unit,
        **entries("frame", [(int(number), found.errors.get(int(number), {})) for number in found.frames]),
        "atoms": [{"atom": name, **dict(zip(_HEADS, row, strict=True))} for name, row in rows],
        "seconds": {"total": elapsed()},
    }


def _as_text(source: InputFile, atoms: Atoms, found: FramePotentials, names: list[str], facts: Facts) -> str:
    rows = [(name, *(f"{value:,.3f}" for value in row)) for name, row in zip(names, _statistics(found), strict=True)]
    more = f"and {len(names) - _SHOWN:,} atoms more; -o values.csv or .h5 has all" if len(names) > _SHOWN else ""
    return "\n".join([
        headline(source, atoms), *medium_lines(facts), "",
        f"Potential at atoms, of all charges but their own, {found.unit}",
        table(("atom", *_HEADS), rows[:_SHOWN], "<>>>>"), *([more] if more else []), "",
        f"{counted(len(found.frames), 'frame')}, on {found.device}: in all {duration(elapsed())}",
    ])  # fmt: skip
