"""`pele-ocl ions`: placement of ions in the electrostatic potential of a molecule."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal

import click

from ..ions import SPECIES, Requests
from ..ions import ions as compute
from ..ladder import POTMAP as VARIANTS
from .call import Call
from .command import INPUT, OUTPUT, EachOnce, command_option
from .map_options import spacing_options
from .options import ReadAtoms, report_options, run_options, structure_options, variant_option
from .progress import ProgressLine
from .showing import failing_as_record, files_written, say_result
from .terminal import elapsed, say

FITTING = {name: variant for name, variant in VARIANTS.items() if variant.method == "direct"}


def _requests(context: click.Context, option: click.Parameter, given: tuple[str, ...]) -> Requests:
    """Parse NAME:COUNT of every --add, in order."""
    requests: dict[str, int | Literal["auto"]] = {}
    for text in given:
        name, _, count = text.partition(":")
        if not name or not re.fullmatch(r"[0-9]{1,9}|auto", count):
            raise click.BadParameter(f"{text!r} is not NAME:COUNT or NAME:auto, such as NA:12")
        if name in requests:
            raise click.BadParameter(f"{name} is given twice; give the sum of the counts")
        requests[name] = "auto" if count == "auto" else int(count)
    return requests


@click.command(cls=EachOnce)
@click.argument("path", metavar="IN", type=INPUT)
@click.option("-o", "--output", type=OUTPUT, metavar="OUT", required=True, help="Write molecule and ions: .pdb.")
@command_option(
    "--add", metavar="NAME:COUNT", multiple=True, callback=_requests, former=("--ion",),
    help="Number of an ion; NAME:auto for the number given by the next two options. By default NA:auto and CL:auto. "
    f"Names: {', '.join(SPECIES)}.", essential=True,
)  # fmt: skip
@command_option("--neutralize", is_flag=True, help="Add ions until the net charge is 0.", essential=True)
@command_option(
    "--concentration", type=float, metavar="C",
    help="Concentration of salt in the free volume, mol/L; also neutralizes. With a single NAME:auto it is the "
    "concentration of this ion.",
    essential=True,
)  # fmt: skip
@click.option(
    "--solute-distance",
    type=float,
    default=6.0,
    show_default=True,
    help="Smallest distance between an ion and an atom, Angstrom.",
)
@click.option(
    "--ion-distance", type=float, default=10.0, show_default=True, help="Smallest distance between two ions, Angstrom."
)
@spacing_options(padding=10.0)
@click.option("--dielectric", type=float, default=1.0, show_default=True, help="Relative permittivity.")
@command_option(
    "--map-output", type=OUTPUT, metavar="MAP", help="Write the potential with all ions: .dx, .mrc, ...",
    former=("--map",),
)  # fmt: skip
@variant_option("How the map is computed, as in `potmap`", FITTING, listed=False)
@run_options
@structure_options
@report_options
def ions(path: Path, read_atoms: ReadAtoms, as_json: bool, verbose: bool, call: Call, **options: Any) -> None:
    """Place ions around the molecule in IN.

    IN is a .pdb, .cif or .pqr file or an AMBER topology with -c, also with .gz. Ions are placed one by one, as in
    cionize, each at its lowest energy in the potential of the molecule and all previous ions. Species alternate in the
    order given. Ions in IN are kept as atoms of the molecule. Energies in kcal/mol.
    """
    with failing_as_record(path, as_json), ProgressLine("Ions") as progress:
        result = compute(
            path, **options, reading=read_atoms, call=call, progress=progress
        )  # fmt: skip
    if as_json:
        say_result(result.to_json())
    else:
        say("\n".join([result.text(verbose, elapsed()), *files_written(call)]))
