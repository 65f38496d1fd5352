"""`pele-ocl relax`: predicted models relaxed by AlphaFold's protocol."""

from __future__ import annotations

from pathlib import Path

import click

from ...errors import PeleError
from ...formats.conformation_files import Content, write_conformation
from ...inputfile import read_file
from ...relax import PROTOCOLS, Relaxer, RelaxResult
from ..command import EachOnce
from ..minimize.progress import StructureLine
from ..minimize.targets import TARGET, Targets, expanded
from ..options import debug_option, run_options
from ..report import counted
from ..terminal import note, say, say_json
from .report import Done, as_json_of, as_text_of


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
@run_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a model instead of the table.")
@click.option("-v", "--verbose", is_flag=True, help="List all violations that are left.")
@debug_option
def relax(
    paths: tuple[Path, ...], output: Path, like: str, precision: str, device: str | None, as_json: bool, verbose: bool
) -> None:
    """Relax predicted models as AlphaFold does, and report what was wrong before and after.

    Amber99SB in vacuum, heavy atoms restrained by 10 kcal/mol/A^2 (half of it times the square), bonds to hydrogen
    held, to an rms gradient of 2.39 kcal/mol/nm; up to three rounds, each of which frees the residues with violations.
    Hydrogens are added where they are lacking; B-factors and numbers are kept. Models of one sequence are prepared
    once.
    """
    targets = Targets.of(output, paths, False, None)
    relaxer, done = Relaxer(like, precision=precision, device=device), list[Done]()
    with StructureLine(len(paths), "Relaxing") as progress:
        for path in paths:
            done.append((path, _relaxed(relaxer, path, targets.files[path])))
            progress.tell(len(done))
    if as_json:
        for path, result in done:
            say_json(as_json_of(path, result))
    else:
        say(as_text_of(done, output, verbose))
    n_failed = sum(isinstance(result, PeleError) for _, result in done)
    if n_failed:
        note(f"Error: {counted(n_failed, 'model')} of {len(done):,} failed")
        click.get_current_context().exit(1)


def _relaxed(relaxer: Relaxer, path: Path, target: Path) -> RelaxResult | PeleError:
    """The result of a model, which is written; or why there is none."""
    try:
        result = relaxer.relax(read_file(path))
        write_conformation(target, Content(result.atoms, source=str(path), b_factors=result.b_factors))
    except PeleError as error:
        return error
    return result
