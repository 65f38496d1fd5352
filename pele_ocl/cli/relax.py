"""`pele-ocl relax`: relaxation of predicted models by AlphaFold's protocol."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from .. import relax as library
from ..formats.conformation_files import written_suffixes
from ..jobs.texts import UNIT, Facts, counted, duration, lines_of
from ..minimize.result import settings_of_rows
from ..relax import PROTOCOLS
from ..relax.result import energy_of
from ..report import text_table as table
from .call import Call, CommandProvenance
from .command import EachOnce, command_option
from .groups import keywords, option, options
from .options import debug_option, json_option, resume_option, run_options, strict_option
from .structures import (
    TARGET,
    Row,
    StructureLine,
    add_reasons,
    exit_for_rows,
    files,
    rows_of,
    show,
)
from .terminal import elapsed, one_line


@dataclass(frozen=True)
class Relaxation:
    """Options of the relaxation."""

    protocol: str = option(
        "Protocol; colabfold ends a round after 2,000 iterations.", like=library, choices=PROTOCOLS,
        former=("--like",),
    )  # fmt: skip
    close_gaps: bool = option(
        "Bond residues with consecutive numbers at any distance. Otherwise C and N more than 4 A apart are a gap.",
        like=library,
    )
    max_iterations: int = option(
        "Maximum number of steps of a model in all its rounds; it is then written in its current state.",
        default=PROTOCOLS["alphafold"].iterations_in_all, type=click.IntRange(min=1),
    )  # fmt: skip


@click.command(cls=EachOnce)
@click.argument("paths", metavar="MODEL...", type=TARGET.input, nargs=-1, required=True, callback=files)
@click.option(
    "-o", "--output", type=TARGET, metavar="OUT", required=True,
    help=f"Write the relaxed model: {written_suffixes(with_b_factors=True)}; of several a folder, or a name such as "
    "'relaxed/{name}.pdb'.",
)  # fmt: skip
@options(Relaxation)
@command_option(
    "--table", "table", type=TARGET, metavar="FILE", help="Write a row for each model: .csv, .h5, .json.",
    former=("--report",),
)  # fmt: skip
@resume_option("models")
@run_options
@strict_option
@json_option(" per model")
@click.option("-v", "--verbose", is_flag=True, help="List all remaining violations.")
@debug_option
def relax(
    paths: tuple[Path, ...], output: Path, relaxation: Relaxation, as_json: bool, verbose: bool, call: Call, **more: Any
) -> None:
    """Relax predicted models as AlphaFold does, and report what was wrong before and after.

    The energy is Amber99SB in vacuum. Heavy atoms are restrained with 10 kcal/mol/A^2 (times half the squared distance)
    and bonds to hydrogen constrained. Models are minimized to an rms gradient of 2.39 kcal/mol/nm. Up to three rounds
    are run, each without restraints on residues with violations. Hydrogens are added if missing; B-factors and numbers
    are kept. Each model is written when it is finished. A model that fails does not stop the run: it is reported. The
    exit code is 1 if a model failed or has more violations, or more clashes, than before.
    """
    with StructureLine("Relaxing") as progress:
        found = library(
            paths, **keywords(relaxation), **more, output=output, errors="record", watch=progress.watch,
            provenance=CommandProvenance(call),
        )  # fmt: skip
    rows = rows_of(found.records)
    show(rows, found.records, as_json, lambda: _as_text(rows, output, verbose))
    exit_for_rows(rows, "model")
    if any(row.get("is_worse") for row in rows):
        raise click.exceptions.Exit(1)


_LISTED = 12  # violations of a model on screen


def _as_text(rows: Sequence[Row], output: Path, verbose: bool) -> str:
    """Return a text table of all models, with the remaining violations."""
    heads = ("model", "violations", "left", "not counted", "rounds", "energy", "moved A", "prepared s", "s")
    lines = table(heads, list(map(_cells, rows)), "<>>>>>>>>").split("\n")
    add_reasons(lines, rows)
    for k, row in enumerate(rows, 1):
        lines[k] = "  ".join([lines[k], *_remarks(row)])
    done = [row for row in rows if "error" not in row]
    listed = [line for row in done for line in _left(row, verbose)]
    clean = sum(row["is_clean"] for row in done)
    ending = f"{counted(len(done), 'model')} -> {one_line(str(output))}, {clean:,} without violations"
    head = f"Violations by AlphaFold's rule; energy, {UNIT}"
    return "\n".join([*_physics_lines(settings_of_rows(rows)), head, *lines, *listed, "", ending, _times(done)])


def _physics_lines(facts: Facts) -> list[str]:
    """Return lines that describe the energies, in vacuum and with restraints."""
    if "restraint" not in facts:
        return []
    restraint = f"heavy atoms, 1/2 x {facts['restraint']:g} kcal/mol/A^2; the energy includes them"
    return [*lines_of(facts), f"Restraints    {restraint}", ""]


def _cells(row: Row) -> list[str]:
    name = one_line(Path(row["structure"]).name)
    if "error" in row:
        return [name, *[""] * 8]
    seconds = row["seconds"]
    return [
        name, f"{row['n_before']:,}", f"{row['n_after']:,}", f"{len(row['left']) - row['n_after']:,}",
        f"{len(row['rounds'])}", f"{energy_of(row):,.1f}", f"{row['rms_displacement']:.3f}",
        f"{seconds['preparation']:.2f}", f"{seconds['total']:.2f}",
    ]  # fmt: skip


def _remarks(row: Row) -> list[str]:
    """Return remarks about problems of a finished model, for the end of its line."""
    found = []
    if row.get("is_worse"):
        found.append("more violations, or more clashes, than before")
    if row.get("stopped_by") == "iterations":
        found.append(f"ended after {row['iterations']:,} iterations")
    return found


def _left(row: Row, verbose: bool) -> list[str]:
    """Return the remaining violations, the relevant ones first."""
    left = row["left"]
    shown = left if verbose else left[:_LISTED]
    more = [f"  and {len(left) - len(shown):,} more; -v lists them"] if len(left) > len(shown) else []
    return (
        ["", f"{one_line(Path(row['structure']).name)}: left", *[f"  {line}" for line in shown], *more] if left else []
    )


def _times(rows: Sequence[Row]) -> str:
    prepared, total = (sum(row["seconds"][name] for row in rows) for name in ("preparation", "total"))
    return f"Total {duration(elapsed())}: {duration(prepared)} preparing, {duration(total - prepared)} relaxing"
