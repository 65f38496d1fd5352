"""Records of a run as a table, as JSON lines, and as a file of results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import ArrayLike

from ...common.errors import InputError
from ...formats import write_table
from ...jobs import Record
from ...jobs.journal import make_folder
from ...minimize.result import CONVERGED
from ..clock import elapsed
from ..json_lines import say_records
from ..physics import Facts, lines_of
from ..report import call_facts, counted, duration
from ..tables import UNIT, table
from ..terminal import note, one_line, say
from .work import MinimizeRequest, device_of

Row = dict[str, Any]  # a record as --json prints it

_SHOWN = 60  # structures in the table
_NAMED = 3  # that failed, in a sentence
_NUMBERS = {
    "rms_gradient": f"{UNIT}/angstrom", "largest_gradient": f"{UNIT}/angstrom",
    "rounding_gradient": f"{UNIT}/angstrom", "iterations": "", "evaluations": "", "restored": "",
    "rms_displacement": "angstrom", "seconds": "s",
}  # fmt: skip


def report(
    records: Sequence[Record],
    printed: Sequence[Record],
    work: MinimizeRequest,
    path: Path | None,
    as_json: bool,
    verbose: bool,
) -> None:
    """Print and write all records; exit with 1 if a structure failed.

    records : of all structures, or of all conformations of one; printed : the records that --json prints
    """
    rows, facts = rows_of(records), settings_of_rows(rows_of(printed))
    write_and_say(
        rows, printed, path, partial(save_rows, facts=facts), as_json,
        lambda: _as_text(rows, facts, device_of(records, work), work, verbose),
    )  # fmt: skip
    _tell_restored(rows)
    tell_findings(rows)
    _tell_limits(rows)
    _tell_rounding(rows, work.options["tolerance"])
    exit_for_failed(rows, "structure")


def rows_of(records: Sequence[Record]) -> list[Row]:
    """Make a row of each record."""
    return [record.to_dict() for record in records]


def settings_of_rows(rows: Sequence[Row]) -> Facts:
    """Give the settings of the first record that is done; force fields and sets of radii of all, each once."""
    found = [row["settings"] for row in rows if row.get("settings")]
    names = ("forcefield", "gb_radii_set")
    several = {name: ", ".join(dict.fromkeys(of[name] for of in found if of.get(name))) for name in names}
    return {**found[0], **several} if found else {}


def write_and_say(
    rows: Sequence[Row], printed: Sequence[Record], path: Path | None, save: Callable[[Path, Sequence[Row]], None],
    as_json: bool, as_text: Callable[[], str],
) -> None:  # fmt: skip
    """Write rows to a path, if there is one, and print the records as JSON, or the rows as text.

    Raises InputError instead, unless JSON is printed, if the only structure failed or all failed for one reason.
    """
    reasons = {row.get("error") for row in rows}
    if not as_json and len(reasons) == 1 and (reason := reasons.pop()) is not None:
        raise InputError(_sentence(rows[0]) if len(rows) == 1 else reason)
    if path is not None:
        make_folder(path.parent)
        save(path, rows)
    if as_json:
        say_records(printed)
    else:
        say(as_text())


def exit_for_failed(rows: Sequence[Row], what: str) -> None:
    """Say why rows failed, and exit with 1; nothing where none did. what : one of them, "structure" """
    failed = [row for row in rows if "error" in row]
    if failed:
        shown = "; ".join(map(_sentence, failed[:_NAMED]))
        rest = f"; and {len(failed) - _NAMED:,} more" if len(failed) > _NAMED else ""
        note(f"Error: {counted(len(failed), what)} of {len(rows):,} failed: {shown}{rest}")
        click.get_current_context().exit(1)


def _sentence(row: Row) -> str:
    """Say why a structure failed, with its name once."""
    name, reason = one_line(row["structure"]), row["error"]
    return str(reason) if reason.startswith(f"{name}:") else f"{name}: {reason}"


def _tell_restored(rows: Sequence[Row]) -> None:
    """Say of how many structures the start was changed."""
    n = sum(bool(row.get("restored")) for row in rows)
    if n:
        note(
            f"Note: {counted(n, 'structure')} of {len(rows):,} had noise all over, and bonds were restored before the "
            "first step; --no-restore leaves them"
        )


def tell_findings(rows: Sequence[Row]) -> None:
    """Say what was found in the given starts, the first of them by its name; --json and the rows have all."""
    found = [row for row in rows if row.get("findings")]
    if found:
        more = f"; and {counted(len(found) - 1, 'structure')} more" if len(found) > 1 else ""
        note(f"Note: {one_line(found[0]['structure'])}: {found[0]['findings'][0]['text']}{more}")


def _tell_limits(rows: Sequence[Row]) -> None:
    """Say which minimizations stopped before the gradient was small."""
    stopped = Counter(row["stopped_by"] for row in rows if "error" not in row)
    told = {"iterations": "reached --max-iterations", "time": "reached --max-seconds"}
    told |= {"stuck": "could not be lowered any further in this precision"}
    for reason, n in stopped.items():
        if reason not in CONVERGED:
            note(f"Note: {counted(n, 'structure')} of {len(rows):,} {told[reason]} before the tolerance was met")


def _tell_rounding(rows: Sequence[Row], tolerance: float) -> None:
    """Say where the decimals of the files leave no gradient as small as was asked for."""
    largest = max((row.get("rounding_gradient", 0.0) for row in rows if row.get("stopped_by") in CONVERGED), default=0)
    if largest > tolerance:
        note(
            f"Note: positions in the file are rounded, which gives an rms gradient of about {largest:.1g} {UNIT}/A; "
            ".cif, .h5 and .nc files have more digits"
        )


_NOT_TOLD = ("model", "device")  # of a Minimizer's options: the one is many numbers, the other stands above


def _as_text(rows: Sequence[Row], facts: Facts, device: str, work: MinimizeRequest, verbose: bool) -> str:
    heads = ("structure", "restored", "before", "after", "rms gradient", "iterations", "stopped by", "moved A", "s")
    shown = rows if verbose else rows[:_SHOWN]
    lines = table(heads, list(map(_cells, shown)), "<>>>>><>>").split("\n")
    add_reasons(lines, shown)
    rest = len(rows) - len(shown)
    more = [f"and {counted(rest, 'structure')} more; --report FILE and --json have them all"] if rest > 0 else []
    n_done = sum("error" not in row for row in rows)
    how = f"{work.options['method']}, {work.options['precision']}, on {device}"
    done = f"{counted(n_done, 'structure')} -> {one_line(str(work.targets.output))}"
    head = f"Energy of structures, {UNIT}; rms gradient, {UNIT}/A"
    details = _details(rows, work) if verbose else []
    physics = [*lines_of(facts, facts.get("terms")), ""] if facts else []
    return "\n".join([*physics, head, *lines, *more, "", done, f"{how}: in all {duration(elapsed())}", *details])


def _details(rows: Sequence[Row], work: MinimizeRequest) -> list[str]:
    """List the settings; of one structure that is done its energies by term, too."""
    given = {name: value for name, value in work.options.items() if value is not None and name not in _NOT_TOLD}
    lines = ["", "Settings: " + ", ".join(f"{name} {value}" for name, value in given.items())]
    if len(rows) > 1 or "error" in rows[0]:
        return lines
    before, after = (rows[0][which] for which in ("energy_before", "energy_after"))
    cells = [(term.replace("_", " "), _number(before.get(term)), _number(value)) for term, value in after.items()]
    return [*lines, "", table(("term", "before", "after"), cells, "<>>")]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.3f}"


def add_reasons(lines: list[str], rows: Sequence[Row]) -> None:
    """Add the reasons of rows that failed to the lines of a table, whose first line is its head."""
    for k, row in enumerate(rows, 1):
        if "error" in row:
            reason = row["error"].removeprefix(f"{one_line(row['structure'])}: ")
            lines[k] = f"{lines[k].rstrip()}  {reason}"


def _cells(row: Row) -> list[str]:
    name = one_line(row["structure"])
    if "error" in row:
        return [name, *[""] * 8]
    before, after = (row[which]["total"] for which in ("energy_before", "energy_after"))
    return [
        name, f"{row['restored']:,}", "" if before is None else f"{before:,.3f}", f"{after:,.3f}",
        f"{row['rms_gradient']:.3g}", f"{row['iterations']:,}", row["stopped_by"],
        f"{row['rms_displacement']:.3f}", f"{row['seconds']['total']:.2f}",
    ]  # fmt: skip


def save(path: Path, records: Sequence[Record]) -> None:
    """Write the report of records."""
    rows = rows_of(records)
    save_rows(path, rows, settings_of_rows(rows))


def save_rows(path: Path, rows: Sequence[Row], facts: Facts) -> None:
    """A row for every structure: its energies by term, or why there are none; facts : settings of all"""
    columns: dict[str, ArrayLike] = {"name": np.array([row["structure"] for row in rows])}
    units: dict[str, str] = {}
    for which in ("energy_before", "energy_after"):
        terms = dict.fromkeys(term for row in rows if "error" not in row for term in row[which])
        for term in terms:
            columns[f"{which}_{term}"] = column([row.get(which, {}).get(term) for row in rows])
            units[f"{which}_{term}"] = UNIT
    for name, unit in _NUMBERS.items():
        columns[name] = column([_figure(row, name) for row in rows])
        units |= {name: unit} if unit else {}
    columns["stopped_by"] = np.array([row.get("stopped_by", "") for row in rows])
    columns["error"] = np.array([row.get("error", "") for row in rows])
    write_table(path, columns, units, {**call_facts(), **facts})


def _figure(row: Row, name: str) -> float | None:
    """Give a number of a row, None if it failed; of its seconds the total."""
    value = row.get(name)
    return value["total"] if isinstance(value, dict) else value


def column(values: Sequence[float | None]) -> ArrayLike:
    """Mask numbers that are not known; counts stay whole."""
    return np.ma.array([value or 0 for value in values], mask=[value is None for value in values])
