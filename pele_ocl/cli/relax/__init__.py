"""`pele-ocl relax`: predicted models relaxed by AlphaFold's protocol."""

from __future__ import annotations

from pathlib import Path

import click

from ...errors import FormatError
from ...formats import require_table_suffix
from ...relax import PROTOCOLS, Relaxer
from ..command import EachOnce
from ..minimize.targets import TARGET, Targets, expanded
from ..options import debug_option, run_options
from .report import report
from .run import rows_of

_SUFFIXES = (".pdb", ".cif")


@click.command(cls=EachOnce)
@click.argument("paths", metavar="MODEL...", type=TARGET.input, nargs=-1, required=True, callback=expanded)
@click.option(
    "-o", "--output", type=TARGET, metavar="OUT", required=True,
    help="Write the relaxed model: .pdb or .cif; of several a folder, or a name such as 'relaxed/{name}.pdb'.",
)  # fmt: skip
@click.option(
    "--like", type=click.Choice(list(PROTOCOLS)), default="alphafold", show_default=True,
    help="The protocol; colabfold ends a round after 2,000 iterations.",
)  # fmt: skip
@click.option("--report", "table", type=TARGET, metavar="FILE", help="Write a row for each model: .csv, .h5, .json.")
@click.option("--resume", is_flag=True, help="Go on with an interrupted run of several models: pass over those done.")
@run_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a model instead of the table.")
@click.option("-v", "--verbose", is_flag=True, help="List all violations that are left.")
@debug_option
def relax(
    paths: tuple[Path, ...], output: Path, like: str, table: Path | None, resume: bool, precision: str,
    device: str | None, as_json: bool, verbose: bool,
) -> None:  # fmt: skip
    """Relax predicted models as AlphaFold does, and report what was wrong before and after.

    Amber99SB in vacuum, heavy atoms restrained by 10 kcal/mol/A^2 (half of it times the square), bonds to hydrogen
    held, to an rms gradient of 2.39 kcal/mol/nm; up to three rounds, each of which frees the residues with violations.
    Hydrogens are added where they are lacking; B-factors and numbers are kept. A model that fails ends no run: it is
    named, and the exit code is 1.
    """
    from ...opencl.device import get_device

    if table is not None:
        require_table_suffix(table)
    chosen = get_device(device)
    if output.suffix.lower() not in ("", *_SUFFIXES) and not output.is_dir():
        raise FormatError(f"{output}: relaxed models are written as {' or '.join(_SUFFIXES)}; name the output so")
    targets = Targets.planned(output, paths, False, table)
    if resume and targets.journal is None:
        raise click.UsageError("--resume goes on with a run of several models; leave it out for one")
    settings = {"like": like, "precision": precision, "device": device or ""}
    rows = rows_of(Relaxer(like, precision=precision, device=chosen), targets, settings, resume)
    report(rows, output, table, as_json, verbose)
