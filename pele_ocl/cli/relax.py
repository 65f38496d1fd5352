"""`pele-ocl relax`: predicted models relaxed by AlphaFold's protocol."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click
import numpy as np

from ..common.errors import FormatError
from ..formats import require_table_suffix, write_table
from ..formats.conformation_files import CONFORMATION_FORMATS, written_suffixes
from ..jobs import Journal, Record
from ..jobs.running import run_with
from ..jobs.sharing import HERE
from ..jobs.spec import StructurePath
from ..minimize.result import CONVERGED
from ..relax import PROTOCOLS
from ..relax.spec import RELAXED, RelaxSpec
from .clock import elapsed
from .command import EachOnce
from .minimize.progress import StructureLine
from .minimize.report import (
    Row,
    add_reasons,
    column,
    exit_for_failed,
    rows_of,
    settings_of_rows,
    tell_findings,
    write_and_say,
)
from .minimize.targets import TARGET, OutputTargets, expanded, files_of_other_run, refuse_files_of
from .options import debug_option, json_option, resume_option, run_options, strict_option
from .physics import Facts, lines_of
from .report import call_facts, counted, duration
from .tables import UNIT, table
from .terminal import note, one_line

_JOURNAL = "relax.jsonl"


@click.command(cls=EachOnce)
@click.argument("paths", metavar="MODEL...", type=TARGET.input, nargs=-1, required=True, callback=expanded)
@click.option(
    "-o", "--output", type=TARGET, metavar="OUT", required=True,
    help=f"Write the relaxed model: {written_suffixes(with_b_factors=True)}; of several a folder, or a name such as "
    "'relaxed/{name}.pdb'.",
)  # fmt: skip
@click.option(
    "--like", type=click.Choice(list(PROTOCOLS)), default="alphafold", show_default=True,
    help="Protocol; colabfold ends a round after 2,000 iterations.",
)  # fmt: skip
@click.option(
    "--close-gaps", is_flag=True,
    help="Bond residues with consecutive numbers at any distance. Otherwise C and N more than 4 A apart are a"
    " gap.",
)  # fmt: skip
@click.option(
    "--max-iterations", type=click.IntRange(min=1), default=2_000, show_default=True,
    help="Largest number of steps of a model, in all its rounds. Then it is written as it is.",
)  # fmt: skip
@click.option("--report", "table", type=TARGET, metavar="FILE", help="Write a row for each model: .csv, .h5, .json.")
@resume_option("models")
@run_options
@strict_option
@json_option(" a model")
@click.option("-v", "--verbose", is_flag=True, help="List all violations that are left.")
@debug_option
def relax(
    paths: tuple[Path, ...], output: Path, like: str, close_gaps: bool, max_iterations: int, table: Path | None,
    resume: bool, precision: str, device: str | None, strict: bool, as_json: bool, verbose: bool,
) -> None:  # fmt: skip
    """Relax predicted models as AlphaFold does, and report what was wrong before and after.

    The energy is Amber99SB in vacuum. Heavy atoms are restrained by 10 kcal/mol/A^2 (half of it times the square), and
    bonds to hydrogen held, to an rms gradient of 2.39 kcal/mol/nm. Up to three rounds follow each other, and each frees
    the residues with violations. Hydrogens are added if they are missing; B-factors and numbers are kept. Each model is
    written once it is done. One that fails ends no run: it is named, and the exit code is 1. The exit code is 1, too,
    if a model has more violations, or more clashes, than before.
    """
    from ..opencl.device import get_device

    if table is not None:
        require_table_suffix(table)
    get_device(device)  # which says now where there is none
    form = CONFORMATION_FORMATS.get(output.suffix.lower())
    if output.suffix and not output.is_dir() and not (form and form.keeps_b_factors):
        known = written_suffixes(with_b_factors=True)
        raise FormatError(f"{output}: relaxed models are written as {known}, which keep B-factors; name the output so")
    targets = OutputTargets.planned(output, paths, False, table)
    if resume and targets.journal is None:
        raise click.UsageError("--resume goes on with a run of several models; leave it out for one")
    refuse_files_of("minimize", targets)
    spec = RelaxSpec(
        output=str(output), like=like, close_gaps=close_gaps, max_iterations=max_iterations, precision=precision,
        device=device, strict=strict,
    )  # fmt: skip
    path = None if targets.journal is None else targets.journal.with_name(_JOURNAL)
    overwritten = "" if resume else files_of_other_run(replace(targets, journal=path), spec.settings())
    journal = Journal(path, spec.settings(), kind=RELAXED, waits=True)
    records = relaxed_records(spec, list(targets.files), journal, resume)
    if overwritten and any(not record.failed for record in records):
        note(overwritten)
    report(records, output, table, as_json, verbose)


def relaxed_records(spec: RelaxSpec, models: Sequence[StructurePath], journal: Journal, resume: bool) -> list[Record]:
    """Relax and write models, tell how far they are, and give their records."""
    records = list[Record]()
    with StructureLine(len(models), "Relaxing") as progress:
        # A model is done when all its rounds are.
        told = replace(spec, watch=lambda _, n, gradient: progress.watch(0, n, gradient))
        for record in run_with(told, models, journal, resume, HERE, progress.pass_over):
            records.append(record)
            progress.done = len(records)
            progress.tell(0)
    return records


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
            f"Note: the minimization of {counted(len(limited), 'model')} of {len(rows):,} stopped before the gradient "
            "fell below the tolerance"
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
    head = f"Violations by AlphaFold's rule; energy, {UNIT}"
    return "\n".join([*_physics_lines(settings_of_rows(rows)), head, *lines, *listed, "", ending, _times(done)])


def _physics_lines(facts: Facts) -> list[str]:
    """Say that the energies are in vacuum, with restraints."""
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
    """Give the energy at the end, restraints included, kcal/mol."""
    return float(row["rounds"][-1]["energy_after"]["total"])


def _left(row: Row, verbose: bool) -> list[str]:
    """List the violations that are left, first the ones that count."""
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
    units = {name: _UNITS[name] for name in names if name in _UNITS}
    write_table(path, {**texts, **columns, **errors}, units, {**call_facts(), **settings_of_rows(rows)})


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
