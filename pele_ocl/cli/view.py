"""`pele-ocl view`: pages and pictures of molecules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ..view import METHODS
from ..view import view as compute
from .command import INPUT, OUTPUT, EachOnce, command_option
from .map_options import color_option, from_unit_option
from .options import ReadAtoms, debug_option, device_option, json_option, structure_options
from .progress import ProgressLine
from .showing import failing_as_record, say_result, written_lines
from .terminal import say


@click.command(cls=EachOnce)
@click.argument("path", metavar="IN", type=INPUT)
@click.option(
    "-o", "--output", type=OUTPUT, metavar="OUT", multiple=True, required=True,
    help="Write a page, .html, or a picture, .png. Can be given several times.",
)  # fmt: skip
@command_option(
    "--map", type=INPUT, metavar="MAP", help="Map to show, from any program; by default the potential is computed.",
    essential=True,
)  # fmt: skip
@from_unit_option("MAP")
@command_option(
    "--residue-values", type=INPUT, metavar="FILE",
    help="Colour residues by value, instead of by a potential: a decomposition of `binding`, .csv, or lines "
    "residue,value.",
    essential=True,
)  # fmt: skip
@command_option(
    "--method", type=click.Choice(METHODS),
    help=f"Potential to compute: {METHODS[0]}, with the Poisson-Boltzmann equation, the default; or screened, the "
    "screened Coulomb potential.", heading="Computation", essential=True,
)  # fmt: skip
@command_option(
    "--ionic-strength", type=float, heading="Computation", essential=True,
    help="Concentration of a 1:1 salt, mol/L; 0.15 by default, whereas `pb` and `potmap` have no salt.",
)  # fmt: skip
@color_option("5 with pb, 2 with screened, else ")
@device_option()
@structure_options
@json_option()
@debug_option
def view(path: Path, output: tuple[Path, ...], read_atoms: ReadAtoms, as_json: bool, **options: Any) -> None:
    """Show the molecule in IN as a page or a picture: its surface coloured by a potential or by residues.

    A page is one file that opens in any browser without a network. It shows slices through the map and the names of
    atoms under the mouse. Pages require plotly, pictures matplotlib. Without --map and --residue-values the potential
    is computed as by `potmap --for-surface`. With them no force field is needed.
    """
    with failing_as_record(path, as_json), ProgressLine("Poisson-Boltzmann") as progress:
        found = compute(path, output, **options, reading=read_atoms, progress=progress)
    if as_json:
        say_result(found.to_json())
    else:
        say("\n".join([found.text(), *written_lines(output)]))
