"""`pele-ocl pb`: Poisson-Boltzmann electrostatics of a structure, or of an APBS input file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from ..pb import SOLVERS, PBIon, PBModel, PBResult
from ..pb import pb as compute
from ..pb_model import BOUNDARIES, SPREADINGS, SURFACES
from .call import Call
from .command import INPUT, OUTPUT, EachOnce, command_option
from .map_options import scene_option, spacing_options
from .options import Command, ReadAtoms, device_option, report_options, strict_option, structure_options
from .progress import ProgressLine
from .showing import failing_as_record, files_written, say_result, written_lines
from .terminal import elapsed, say

APBS = "apbs"
DEFAULTS = PBModel()


def _ions(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> tuple[PBIon, ...]:
    """Parse CHARGE:CONCENTRATION[:RADIUS] of every --ion."""
    ions = []
    for text in given:
        parts = text.split(":")
        try:
            numbers = [float(part) for part in parts]
        except ValueError:
            numbers = []
        if len(numbers) not in (2, 3):
            raise click.BadParameter(f"{text!r} is not CHARGE:CONC or CHARGE:CONC:RADIUS, such as 1:0.15:2.0")
        ions.append(PBIon(*numbers))
    return tuple(ions)


def _constant(
    name: str, text: str, choices: tuple[str, ...] = (), field: str = "", **more: Any
) -> Callable[[Command], Command]:
    """Add an option for a field of PBModel, with its default only in the help text. field : by default the name"""
    default = getattr(DEFAULTS, field or name)
    kind = click.Choice(choices) if choices else float
    text = f"{text.removesuffix('.')}; {default if choices else f'{default:g}'} by default."
    return command_option(f"--{name.replace('_', '-')}", type=kind, help=text, **more)


@click.command(cls=EachOnce)
@click.argument("path", metavar="IN", type=INPUT)
@command_option(
    "-o", "--output", type=OUTPUT, metavar="MAP", help="Write the potential, kT/e: .dx, .mrc, .cube, .h5, ...",
    essential=True,
)  # fmt: skip
@click.option(
    "--pqr",
    type=OUTPUT,
    metavar="FILE",
    help="Write the atoms with the charges and radii that are used, as a .pqr file.",
)
@scene_option
@spacing_options(padding=10.0)
@_constant("solute_dielectric", "Relative permittivity of the solute.", heading="Solvent")
@_constant("solvent_dielectric", "Relative permittivity of the solution.", heading="Solvent")
@command_option(
    "--ionic-strength", type=float, heading="Solvent", essential=True,
    help="Concentration of a 1:1 salt with ions of 2 Angstrom, mol/L; 0 by default, whereas `view` has 0.15.",
)  # fmt: skip
@click.option(
    "--ion",
    multiple=True,
    callback=_ions,
    metavar="CHARGE:CONC[:RADIUS]",
    help="Ion species: charge in e, concentration in mol/L, radius in Angstrom; instead of --ionic-strength. Can be "
    "given several times.",
)
@_constant("temperature", "Temperature, K.", heading="Solvent")
@command_option(
    "--nonlinear", is_flag=True, help="Solve the nonlinear equation, for highly charged molecules in salt.",
    essential=True,
)  # fmt: skip
@_constant(
    "dielectric_surface",
    "Boundary between solute and solvent: edges (the fraction of each edge that is solvent), or one of APBS's.",
    tuple(SURFACES), "surface", former=("--surface",), heading="Solvent", essential=True,
)  # fmt: skip
@_constant("probe", "Radius of a solvent molecule, Angstrom.")
@_constant(
    "charges", "Distribute each charge over 8 (spl0), 27 (spl2) or 125 (spl4) nodes.", SPREADINGS, essential=True
)
@_constant(
    "boundary", "Potential at the boundary of the grid: of each atom, of the molecule's moments, or 0.", BOUNDARIES
)
@command_option(
    "--like", type=click.Choice([APBS]),
    help="Compute as APBS: surface smol, charges spl2, boundary sdh, and the difference of two solutions.",
    heading="Solvent", essential=True,
)  # fmt: skip
@click.option(
    "--solver",
    type=click.Choice(list(SOLVERS)),
    default="mgcg",
    show_default=True,
    help="; ".join(f"{name}: {about}" for name, (about, _) in SOLVERS.items()) + ".",
)
@command_option(
    "--tolerance", type=float, default=1e-6, show_default=True, help="Relative residual at which the solver stops.",
    heading="Stopping", essential=True,
)  # fmt: skip
@click.option("--extrapolate", is_flag=True, help="Extrapolate the energy to a spacing of 0 from three spacings.")
@click.option(
    "--shifts",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Also compute the energy on this number of shifted grids.",
)
@command_option(
    "--per-residue", is_flag=True, help="Also report each residue's contribution to the energy.", heading="Reports",
    essential=True,
)  # fmt: skip
@device_option()
@strict_option
@structure_options
@report_options
def pb(
    path: Path, output: Path | None, read_atoms: ReadAtoms, as_json: bool, verbose: bool, call: Call, **options: Any
) -> None:
    """Compute the Poisson-Boltzmann solvation energy and potential of the molecule in IN.

    IN is a structure, preferably a .pqr file, whose radii are used, or an input file of APBS (.in). An input file is
    computed as by APBS: the same lines are printed and maps written. Energies in kcal/mol, with input files of APBS in
    kJ/mol.
    """
    with failing_as_record(path, as_json), ProgressLine("Poisson-Boltzmann") as progress:
        result = compute(
            path, **options, output=output, keep_map=output is not None, reading=read_atoms,
            call=call, show=None if as_json else say, progress=progress,
        )  # fmt: skip
    if as_json:
        say_result(result.to_json())
    elif isinstance(result, PBResult):
        say("\n".join([result.text(verbose, elapsed()), *files_written(call), *written_lines(result.scenes)]))
