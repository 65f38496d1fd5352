"""`pele-ocl minimize`: minimization of one or many structures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import click

from .. import minimize as library
from ..formats.conformation_files import written_suffixes
from ..jobs.texts import UNIT, counted, duration, lines_of
from ..minimize import METHODS, MinimizeBatch, MinimizeResult
from ..minimize.options import MOST_ROUNDS
from ..minimize.result import settings_of_rows
from ..report import text_table as table
from .call import Call, CommandProvenance
from .command import EachOnce, command_option
from .groups import keywords, option, options
from .options import (
    cluster_options,
    models_option,
    pair_options,
    pair_variant_option,
    report_options,
    run_options,
    solvent_flags,
    strict_option,
    structure_flags,
    surface_options,
    trajectory_flags,
    words_of,
)
from .showing import timed_record
from .structures import (
    TARGET,
    Holding,
    Row,
    StructureLine,
    add_reasons,
    constraints_option,
    exit_for_rows,
    files,
    rows_of,
    show,
)
from .terminal import elapsed, one_line

__all__ = ["minimize"]


@dataclass(frozen=True)
class Descent:
    """Options of the minimization and its stopping criteria."""

    heading: ClassVar[str] = "Stopping"

    method: str = option(
        "Minimization algorithm.", like=library, choices=METHODS, heading="Computation", essential=True
    )
    tolerance: str = option(
        "Stop at this rms gradient, kcal/mol/A, or with its unit: 1kJ/mol/nm.", like=library, metavar="G",
        essential=True,
    )  # fmt: skip
    max_gradient: float | None = option(
        "Also stop when every atom's gradient is at most this, kcal/mol/A.", metavar="G", former=("--largest",)
    )
    energy_tolerance: float | None = option(
        "Also stop when three steps in a row change the energy by less than this, kcal/mol.", metavar="E",
        former=("--energy-change",),
    )  # fmt: skip
    max_iterations: int = option("Maximum number of steps.", like=library, type=click.IntRange(min=0), essential=True)
    max_seconds: float | None = option(
        "Time limit of a structure, or of structures minimized together, seconds; they are then written in their "
        "current state.",
        metavar="S",
    )
    bond_repair: bool = option(
        "Restore bonds of distorted structures before minimizing, or use them unchanged.",
        "--bond-repair/--no-bond-repair", default=True, show_default=True, former=("--restore/--no-restore",),
        heading="Restraints and constraints",
    )  # fmt: skip
    rounds: int = option(
        "Number of minimizations, one after another. With --fixed-radii, Born radii are updated at the start of each.",
        like=library, type=click.IntRange(1, MOST_ROUNDS),
    )  # fmt: skip


@click.command(cls=EachOnce)
@click.argument("paths", metavar="IN...", type=TARGET.input, nargs=-1, required=True, callback=files)
@click.option(
    "-o", "--output", type=TARGET, metavar="OUT", required=True,
    help=f"Write the structures: {written_suffixes()}; of several files a folder, or a name such as "
    "'relaxed/{name}.cif'; of a trajectory or of all models one file.",
)  # fmt: skip
@options(Descent, Holding)
@constraints_option(("hbonds", "hbonds-present"))
@command_option(
    "--table", "table", type=TARGET, metavar="FILE", help="Write a row for each structure: .csv, .h5, .json.",
    former=("--report",),
)  # fmt: skip
@pair_options
@models_option
@trajectory_flags
@cluster_options
@pair_variant_option
@run_options
@structure_flags
@solvent_flags
@surface_options
@strict_option
@report_options
@words_of
def minimize(
    paths: tuple[Path, ...], output: Path, descent: Descent, holding: Holding,
    terms: str | None, as_json: bool, verbose: bool, words: dict[str, Any], call: Call, **more: Any,
) -> None:  # fmt: skip
    """Relax the structures in IN: move their atoms to a minimum of their energy.

    IN is one file or several, or a pattern in quotation marks; with -t the frames of a trajectory are relaxed, with
    --models all the models of a PDB file. Energies in kcal/mol, gradients in kcal/mol/Angstrom. A structure that fails
    does not stop the run: it is reported, and the exit code is 1. One that reaches a limit is written in its current
    state, with a note. --resume continues an interrupted run of several structures. --json prints one object per
    structure. --workers and --scheduler distribute the structures; this does not change results.
    """
    with StructureLine() as progress:
        found = library(
            paths, **keywords(descent), **keywords(holding), **more, **words, only_terms=terms, output=output,
            errors="record", watch=progress.watch, provenance=CommandProvenance(call),
        )  # fmt: skip
    rows = rows_of(found.records)
    whole = found.whole if isinstance(found, MinimizeBatch) else None
    printed = found.records if whole is None else [timed_record(whole)]
    show(rows, printed, as_json, lambda: _as_text(rows, found, output, _settings(descent, more), verbose))
    exit_for_rows(rows, "structure")


_SHOWN = 60  # structures in the table
_TOLD = ("fixed_radii", "one_four", "cutoff", "only_terms", "constraints", "precision", "variant")


def _settings(descent: Descent, more: Mapping[str, Any]) -> str:
    given = {**keywords(descent), **{name: value for name, value in more.items() if name in _TOLD}}
    return "Settings: " + ", ".join(f"{name} {value}" for name, value in given.items() if value is not None)


def _as_text(
    rows: Sequence[Row], found: MinimizeResult | MinimizeBatch, output: Path, settings: str, verbose: bool
) -> str:  # fmt: skip
    shown = rows if verbose else rows[:_SHOWN]
    lines = _table(shown).split("\n")
    add_reasons(lines, shown)
    rest = len(rows) - len(shown)
    more = [f"and {counted(rest, 'structure')} more; --table FILE and --json list all"] if rest > 0 else []
    whole = found.whole if isinstance(found, MinimizeBatch) else None
    of = rows if whole is None else [whole.to_dict()]
    facts = settings_of_rows(of)
    done = [row for row in of if "error" not in row]
    devices = ", ".join(dict.fromkeys(str(row["device"]) for row in done))
    n_done = sum("error" not in row for row in rows)
    how = f"{done[0]['method']}, {done[0]['precision']}, on {devices}" if done else "nothing was minimized"
    ending = f"{counted(n_done, 'structure')} -> {one_line(str(output))}"
    head = f"Energy of structures, {UNIT}; rms gradient, {UNIT}/A"
    details = _details(rows, settings) if verbose else []
    physics = [*lines_of(facts, facts.get("terms")), ""] if facts else []
    return "\n".join([*physics, head, *lines, *more, "", ending, f"{how}: total {duration(elapsed())}", *details])


def _details(rows: Sequence[Row], settings: str) -> list[str]:
    """Return lines with the settings and, for a single structure, its energies by term."""
    lines = ["", settings]
    if len(rows) > 1 or "error" in rows[0]:
        return lines
    before, after = (rows[0][which] for which in ("energy_before", "energy_after"))
    cells = [(term.replace("_", " "), _number(before.get(term)), _number(value)) for term, value in after.items()]
    return [*lines, "", table(("term", "before", "after"), cells, "<>>")]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.3f}"


def _table(rows: Sequence[Row]) -> str:
    """Return a table of structures, with the number of restored bonds if there are any."""
    columns: dict[str, tuple[str, Callable[[Row], str]]] = {
        "structure": ("<", lambda row: one_line(row["structure"])),
        "restored bonds": (">", lambda row: f"{row['restored']:,}"),
        "before": (">", lambda row: _number(row["energy_before"]["total"])),
        "after": (">", lambda row: _number(row["energy_after"]["total"])),
        "rms gradient": (">", lambda row: f"{row['rms_gradient']:.3g}"),
        "iterations": (">", lambda row: f"{row['iterations']:,}"),
        "stopped by": ("<", lambda row: row["stopped_by"]),
        "moved A": (">", lambda row: f"{row['rms_displacement']:.3f}"),
        "s": (">", lambda row: f"{row['seconds']['total']:.2f}"),
    }
    if not any(row.get("restored") for row in rows):
        del columns["restored bonds"]
    cells = [["" if "error" in row and name != "structure" else cell(row) for name, (_, cell) in columns.items()]
             for row in rows]  # fmt: skip
    return table(tuple(columns), cells, "".join(side for side, _ in columns.values()))
