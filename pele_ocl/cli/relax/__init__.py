"""`pele-ocl relax`: predicted models relaxed by AlphaFold's protocol."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from ...errors import FormatError
from ...formats import require_table_suffix
from ...jobs import Journal, Record
from ...jobs.relax import RELAXED, RelaxSpec
from ...jobs.running import run_with
from ...jobs.sharing import HERE
from ...jobs.spec import StructurePath
from ...relax import PROTOCOLS
from ..command import EachOnce
from ..contract import is_strict, strict_option
from ..minimize.progress import StructureLine
from ..minimize.targets import TARGET, Targets, expanded
from ..options import debug_option, run_options
from .report import report

_JOURNAL = "relax.jsonl"
_SUFFIXES = (".pdb", ".cif")


@click.command(cls=EachOnce)
@click.argument("paths", metavar="MODEL...", type=TARGET.input, nargs=-1, required=True, callback=expanded)
@click.option(
    "-o", "--output", type=TARGET, metavar="OUT", required=True,
    help="Write the relaxed model: .pdb or .cif; of several a folder, or a name such as 'relaxed/{name}.pdb'.",
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
@click.option("--resume", is_flag=True, help="Continue an interrupted run: skip models that are done.")
@run_options
@strict_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a model instead of the table.")
@click.option("-v", "--verbose", is_flag=True, help="List all violations that are left.")
@debug_option
def relax(
    paths: tuple[Path, ...], output: Path, like: str, close_gaps: bool, max_iterations: int, table: Path | None,
    resume: bool, precision: str, device: str | None, as_json: bool, verbose: bool,
) -> None:  # fmt: skip
    """Relax predicted models as AlphaFold does, and report what was wrong before and after.

    Amber99SB in vacuum, heavy atoms restrained by 10 kcal/mol/A^2 (half of it times the square), bonds to hydrogen
    held, to an rms gradient of 2.39 kcal/mol/nm; up to three rounds, each of which frees the residues with violations.
    Hydrogens are added where they are lacking; B-factors and numbers are kept. Each model is written once it is done.
    One that fails ends no run: it is named, and the exit code is 1, as it is where a model has more violations, or more
    clashes, than before.
    """
    from ...opencl.device import get_device

    if table is not None:
        require_table_suffix(table)
    get_device(device)  # which says now where there is none
    if output.suffix.lower() not in ("", *_SUFFIXES) and not output.is_dir():
        raise FormatError(f"{output}: relaxed models are written as {' or '.join(_SUFFIXES)}; name the output so")
    targets = Targets.planned(output, paths, False, table)
    if resume and targets.journal is None:
        raise click.UsageError("--resume goes on with a run of several models; leave it out for one")
    spec = RelaxSpec(
        output=str(output), like=like, close_gaps=close_gaps, max_iterations=max_iterations, precision=precision,
        device=device, strict=is_strict(),
    )  # fmt: skip
    path = None if targets.journal is None else targets.journal.with_name(_JOURNAL)
    journal = Journal(path, spec.settings(), kind=RELAXED, waits=True)
    report(records_of(spec, list(targets.files), journal, resume), output, table, as_json, verbose)


def records_of(spec: RelaxSpec, models: Sequence[StructurePath], journal: Journal, resume: bool) -> list[Record]:
    """The records of models, which are relaxed and written; how far they are is told."""
    records = list[Record]()
    with StructureLine(len(models), "Relaxing") as progress:
        # A model is done when all its rounds are.
        told = replace(spec, watch=lambda _, n, gradient: progress.watch(0, n, gradient))
        for record in run_with(told, models, journal, resume, HERE, progress.pass_over):
            records.append(record)
            progress.done = len(records)
            progress.tell(0)
    return records
