"""`pele-ocl tune`: measurement of variants and settings on a device, for use by `auto`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import date
from math import isfinite
from textwrap import indent
from typing import TYPE_CHECKING

import click

from ..bench.systems import SYSTEMS, load
from ..common.variant import PRECISIONS
from ..plan.tuning import RULES, SIZES, BestChoice, Entry, findings, store
from ..report import text_table as table
from .command import EachOnce
from .options import debug_option, device_option, json_option, precisions_option
from .progress import ProgressLine

if TYPE_CHECKING:
    from ..bench.tune import Row
    from ..opencl.device import Device

INDENT = " " * 10  # below the quantity
HEAD = (
    f"{'quantity':10s}{'precision':11s}{'structure':14s}{'size':>15s}{'rules ms':>12s}{'auto ms':>12s}{'best ms':>12s}"
    f"{'auto/best':>11s}  best"
)


@click.command(cls=EachOnce)
@device_option("devices", multiple=True, more=" Can be given several times; by default the best.")
@click.option("--quantity", "quantities", type=click.Choice(list(SIZES)), multiple=True, help="Default: all.")
@precisions_option()
@click.option(
    "--system", "systems", type=click.Choice(list(SYSTEMS)), multiple=True,
    help="Structure to measure with; by default all that take less than 15 s each.",
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Measure and print without storing.")
@click.option("--show", is_flag=True, help="Print the stored choices and their file.")
@click.option("--forget", is_flag=True, help="Delete the stored choices of --device, or of all devices.")
@json_option()
@click.option("-v", "--verbose", is_flag=True, help="Print the time of every choice.")
@debug_option
def tune(
    devices: tuple[str, ...], quantities: tuple[str, ...], precisions: tuple[str, ...], systems: tuple[str, ...],
    dry_run: bool, show: bool, forget: bool, as_json: bool, verbose: bool,
) -> None:  # fmt: skip
    """Measure which variants and tile sizes are fastest on a device, and store them for `auto`.

    Without tuning, built-in rules choose by the kind of device. All choices are timed alternately on shipped structures
    of 96 to 30,211 atoms. A choice is stored if it takes at least 5 % less time than the rules' choice in three
    quarters of the rounds. There is one per quantity, precision and size, in a file in your cache folder
    (PELE_OCL_TUNING sets another file, or is `off`). `auto` then uses the best choice for the nearest size. Results
    change only by rounding.

    "rules" is what the built-in rules choose, "auto" what is chosen now, "best" the fastest. Choices with wrong results
    are excluded and listed. Tuning takes one to three minutes per device, which must be otherwise idle.
    """
    if sum((dry_run, show, forget)) > 1:
        raise click.UsageError("choose one of --dry-run, --show and --forget")
    if show:
        click.echo(_remembered_as_json() if as_json else _remembered_as_text())
        return
    from ..opencl.device import get_device

    if forget:
        gone = store.forget([get_device(choice) for choice in devices])
        click.echo(f"{store.require_path()}: {'forgotten' if gone else 'nothing was stored'}")
        return
    if not dry_run:
        store.prepare_folder()
    reports = []
    for device in [get_device(choice) for choice in devices or (None,)]:
        rows: list[Row] = []
        if not as_json:
            click.echo(f"{device}, driver {device.driver}\n{HEAD}")
        for series in _measure(device, quantities, precisions, systems):
            rows += series
            if not dry_run:
                store.remember(_entry(device, series))  # saved immediately, in case of an interruption
            if not as_json:
                click.echo("\n".join(_line(row, verbose) for row in series))
        if not as_json:
            click.echo(_worst(rows))
        reports.append({"device": str(device), "driver": device.driver, "rows": [_row_as_json(row) for row in rows]})
    if as_json:
        click.echo(json.dumps({"file": None if dry_run else str(store.require_path()), "devices": reports}))
    elif not dry_run:
        click.echo(f"\nStored in {store.require_path()}; `pele-ocl tune --forget` deletes it.")


def _measure(
    device: Device, quantities: Sequence[str], precisions: Sequence[str], systems: Sequence[str]
) -> Iterator[list[Row]]:
    """Yield the measured rows of each quantity and precision, with progress on stderr."""
    from ..bench.tune import Case, measure

    cases = [Case(name, load(name)) for name in systems or SYSTEMS]
    chosen = [p for p in precisions or PRECISIONS if p == "float32" or device.has_float64]
    work = [(quantity, precision) for quantity in quantities or SIZES for precision in chosen]
    with ProgressLine("Tuning") as progress:
        for number, (quantity, precision) in enumerate(work):
            rows: list[Row] = []
            for row in measure(quantity, precision, cases, device, bool(systems)):
                rows.append(row)
                progress((number + len(rows) / len(cases)) / len(work))
            yield rows


def _worst(rows: Sequence[Row]) -> str:
    """Return a summary of how much slower `auto` is than the best choice."""
    worst = max(rows, key=lambda row: row.ratio)
    where = f"{worst.quantity}, {worst.precision}, {worst.system}"
    return f"auto took at most {worst.ratio:.2f} times as long as the best ({where})"


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:,.3f}"


def _line(row: Row, verbose: bool) -> str:
    times = "".join(f"{_ms(row.seconds[choice]):>12s}" for choice in (RULES, row.auto, row.best))
    line = f"{row.quantity:10s}{row.precision:11s}{row.system:14s}{row.size:15,d}{times}{row.ratio:11.2f}  {row.best}"
    wrong = [
        f"{INDENT}discarded because of wrong results: {choice}, off by {error:.1e}"
        for choice, error in row.wrong.items()
    ]
    return "\n".join([line, *wrong, *(["", _choices(row), ""] if verbose else [])])


def _choices(row: Row) -> str:
    """Return all choices with their times, the fastest first."""
    rules = row.seconds[RULES]
    cells = [
        (str(choice), _ms(seconds), f"{seconds / rules:.2f}")
        for choice, seconds in sorted(row.seconds.items(), key=lambda item: item[1])
    ]
    return indent(table(("choice", "ms", "rules = 1"), cells, "<>>"), INDENT)


def _row_as_json(row: Row) -> dict[str, object]:
    return {
        "quantity": row.quantity,
        "precision": row.precision,
        "system": row.system,
        "size": row.size,
        "auto": str(row.auto),
        "best": str(row.best),
        "ratio": row.ratio,
        "seconds": {str(choice): seconds for choice, seconds in row.seconds.items()},
        "wrong": {str(choice): error if isfinite(error) else None for choice, error in row.wrong.items()},
    }


def _entry(device: Device, rows: Sequence[Row]) -> Entry:
    found = (
        BestChoice(
            row.quantity, row.precision, row.size, row.best, round(1e3 * row.seconds[row.best], 4),
            round(1e3 * row.seconds[RULES], 4),
        )
        for row in rows
    )  # fmt: skip
    version, kernels = findings.versions()
    today = date.today().isoformat()
    return Entry(device.name, device.platform, device.driver, version, kernels, today, tuple(found))


def _remembered_as_json() -> str:
    return json.dumps(
        {"file": str(store.require_path()), "devices": [findings.as_json(entry) for entry in store.entries()]}
    )


def _remembered_as_text() -> str:
    path, known = store.require_path(), store.entries()
    if not known:
        return f"{path}: nothing is stored; `pele-ocl tune` measures"
    return "\n\n".join([str(path), *(_entry_as_text(entry) for entry in known)])


def _entry_as_text(entry: Entry) -> str:
    state = "" if entry.is_current else "; ignored, because it is from another version"
    made = f"measured on {entry.date} with pele-ocl {entry.pele_ocl}, kernels {entry.kernels}{state}"
    rows = [
        (f.quantity, f.precision, f"{f.size:,}", SIZES[f.quantity], f"{f.rules_ms:,.3f}", f"{f.ms:,.3f}", str(f.choice))
        for f in entry.findings
    ]
    head = ("quantity", "precision", "size", "of", "rules ms", "best ms", "auto takes")
    return f"{entry.device}, {entry.platform}, driver {entry.driver}: {made}\n{table(head, rows, '<<><>><')}"
