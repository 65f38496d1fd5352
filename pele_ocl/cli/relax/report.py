"""The models that were relaxed, as text, as JSON and as a file of results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
import numpy as np

from ...formats import write_table
from ...jobs import Record
from ...minimize.result import CONVERGED
from ..clock import elapsed
from ..energies import UNIT
from ..minimize.report import Row, add_reasons, column, exit_for_failed, rows_of, tell_findings, write_and_say
from ..report import call_facts, counted, duration
from ..tables import table
from ..terminal import note, one_line

_LISTED = 12  # violations of a model on screen
_UNITS = {"energy": UNIT, "rms_displacement": "angstrom", "prepared": "s", "seconds": "s"}


def report(records: Sequence[Record], output: Path, path: Path | None, as_json: bool, verbose: bool) -> None:
    """Print and write all rows; exit with 1 where a model failed, or has more violations than before."""
    rows = rows_of(records)
    write_and_say(rows, records, path, _save, as_json, lambda: _as_text(rows, output, verbose))
    _tell(rows)
    exit_for_failed(rows, "model")
    if any(row.get("is_worse") for row in rows):
        click.get_current_context().exit(1)


def _tell(rows: Sequence[Row]) -> None:
    """Notes about the files, about starts that were changed, and about models that are not as they should be."""
    done = [row for row in rows if "error" not in row]
    for row in done:
        for sentence in row["notes"]:
            note(f"Note: {sentence}")
    tell_findings(done)
    restored = [row for row in done if row["restored"]]
    if restored:
        note(f"Note: bonds were restored before the first step in {counted(len(restored), 'model')} of {len(rows):,}")
    limited = [row for row in done if row["stopped_by"] not in CONVERGED]
    if limited:
        note(
            f"Note: {counted(len(limited), 'model')} of {len(rows):,} ended before its gradient was below the tolerance"
        )
    worse = [row for row in done if row["is_worse"]]
    if worse:
        named = ", ".join(
            f"{one_line(row['structure'])} ({row['n_before']:,} -> {row['n_after']:,})" for row in worse[:3]
        )
        rest = f", and {len(worse) - 3:,} more" if len(worse) > 3 else ""
        note(f"Error: more violations, or more clashes, than before in {named}{rest}")


def _as_text(rows: Sequence[Row], output: Path, verbose: bool) -> str:
    """A table of all models, and the violations that are left."""
    heads = ("model", "violations", "left", "not counted", "rounds", "energy", "moved A", "prepared s", "s")
    lines = table(heads, list(map(_cells, rows)), "<>>>>>>>>").split("\n")
    add_reasons(lines, rows)
    for k, row in enumerate(rows, 1):
        lines[k] = "  ".join([lines[k], *_remarks(row)])
    done = [row for row in rows if "error" not in row]
    listed = [line for row in done for line in _left(row, verbose)]
    clean = sum(row["is_clean"] for row in done)
    ending = f"{counted(len(done), 'model')} -> {one_line(str(output))}, {clean:,} without violations"
    return "\n".join([f"Violations by AlphaFold's rule; energy, {UNIT}", *lines, *listed, "", ending, _times(done)])


def _cells(row: Row) -> list[str]:
    name = one_line(Path(row["structure"]).name)
    if "error" in row:
        return [name, *[""] * 8]
    seconds = row["seconds"]
    return [
        name, f"{row['n_before']:,}", f"{row['n_after']:,}", f"{len(row['left']) - row['n_after']:,}",
        f"{len(row['rounds'])}", f"{_energy(row):,.1f}", f"{row['rms_displacement']:.3f}",
        f"{seconds['preparation']:.2f}", f"{seconds['total']:.2f}",
    ]  # fmt: skip


def _remarks(row: Row) -> list[str]:
    """Remarks about a model that is done and not as it should be, for the end of its line."""
    found = []
    if row.get("is_worse"):
        found.append("more violations, or more clashes, than before")
    if row.get("stopped_by") == "iterations":
        found.append(f"ended after {row['iterations']:,} iterations")
    return found


def _energy(row: Row) -> float:
    """The energy at the end, restraints included, kcal/mol."""
    return float(row["rounds"][-1]["energy_after"]["total"])


def _left(row: Row, verbose: bool) -> list[str]:
    """The violations that are left, those that count first."""
    left = row["left"]
    shown = left if verbose else left[:_LISTED]
    more = [f"  and {len(left) - len(shown):,} more; -v lists them"] if len(left) > len(shown) else []
    return (
        ["", f"{one_line(Path(row['structure']).name)}: left", *[f"  {line}" for line in shown], *more] if left else []
    )


def _times(rows: Sequence[Row]) -> str:
    prepared, total = (sum(row["seconds"][name] for row in rows) for name in ("preparation", "total"))
    return f"In all {duration(elapsed())}: {duration(prepared)} preparing, {duration(total - prepared)} relaxing"


def _save(path: Path, rows: Sequence[Row]) -> None:
    """A row for every model, or why there is none."""
    figures = [_figures(row) for row in rows]
    names = next((list(figure) for figure in figures if figure), [])
    columns = {name: column([figure.get(name) for figure in figures]) for name in names}
    texts = {"name": np.array([row["structure"] for row in rows])}
    errors = {"error": np.array([row.get("error", "") for row in rows])}
    write_table(
        path, {**texts, **columns, **errors}, {name: _UNITS[name] for name in names if name in _UNITS}, call_facts()
    )


def _figures(row: Row) -> dict[str, float]:
    if "error" in row:
        return {}
    return {
        "violations": row["n_before"], "left": row["n_after"], "not_counted": len(row["left"]) - row["n_after"],
        "rounds": len(row["rounds"]), "iterations": row["iterations"], "restored": row["restored"],
        "worse": int(row["is_worse"]), "energy": _energy(row), "rms_displacement": row["rms_displacement"],
        "atoms_added": row["atoms_added"], "prepared": row["seconds"]["preparation"],
        "seconds": row["seconds"]["total"],
    }  # fmt: skip
