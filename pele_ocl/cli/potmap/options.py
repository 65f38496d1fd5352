"""Options of `potmap` about the law of the potential and about the grid."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click
import numpy as np

from ...atoms import Atoms
from ...grid import Grid
from ...pb_model import PBModel, salt_of
from ...units import POTENTIAL_UNITS
from ...view import FOR_SURFACE, FOR_SURFACE_END, PROGRAMS
from ..command import OUTPUT
from ..options import Command, png_option, range_option

DEFAULT_PADDING = 10.0


def physics_options(command: Command) -> Command:
    """Options about the law of the potential and its unit."""

    def option(name: str, default: float, text: str) -> Any:
        return click.option(name, type=float, default=default, show_default=True, help=text)

    options = [
        option("--dielectric", 1.0, "Relative permittivity; of the solvent with pb, where 78.54 is the default."),
        option("--solute-dielectric", PBModel.solute_dielectric, "Relative permittivity inside the molecule, of pb."),
        click.option("--distance-dependent", is_flag=True, help=
            "Multiply the relative permittivity by the distance in Angstrom."),
        option("--ionic-strength", 0.0, "Concentration of a 1:1 salt that screens the potential, mol/L."),
        option("--temperature", 298.15, "Temperature, K; matters for kT/e and with salt."),
        option("--min-distance", 0.0, "Points closer to an atom get the potential at this distance, Angstrom."),
        click.option(
            "--units", type=click.Choice(POTENTIAL_UNITS), default=POTENTIAL_UNITS[0], show_default=True,
            help="Unit of the values; a cube file is in hartree/e unless it is given.",
        ),
    ]  # fmt: skip
    for decorate in reversed(options):
        command = decorate(command)
    return command


def grid_options(command: Command) -> Command:
    """Options about the grid."""
    options = [
        click.option(
            "--spacing",
            type=float,
            default=0.5,
            show_default=True,
            help="Distance between neighbouring points, Angstrom.",
        ),
        click.option(
            "--padding", type=float, help="Width of the map around the outermost atoms, Angstrom; 10 by default."
        ),
        click.option("--origin", type=float, nargs=3, metavar="X Y Z", help="First point of the map; needs --shape."),
        click.option(
            "--shape", type=int, nargs=3, metavar="NX NY NZ", help="Number of points along x, y and z; needs --origin."
        ),
    ]
    for decorate in reversed(options):
        command = decorate(command)
    return command


def picture_options(command: Command) -> Command:
    """Options about pictures; --for-surface gives defaults to options about the law, which win where they are given."""
    options: list[Callable[[Command], Command]] = [
        click.option(
            "--for-surface", is_flag=True, is_eager=True, expose_value=False, callback=_for_surface,
            help="Use the settings of surface pictures: kT/e, dielectric 78.54, 0.15 mol/L of salt, colours "
            "from -2 to 2, of pb from -5 to 5. Other options override them.",
        ),
        png_option,
        click.option(
            "--surface-png", type=OUTPUT, metavar="FILE", help=
                "Draw the molecular surface, coloured by the map."
        ),
        click.option(
            "--scene", "scenes", type=click.Choice(list(PROGRAMS)), multiple=True,
            help="Write a script beside the map for a program that shows it on the surface. Can be given "
            "several times.",
        ),
        range_option(),
    ]  # fmt: skip
    for decorate in reversed(options):
        command = decorate(command)
    return command


def _for_surface(context: click.Context, _: click.Parameter, is_wanted: bool) -> None:
    """Let the options of a map on a surface have the defaults that such pictures have."""
    if is_wanted:
        context.default_map = {**(context.default_map or {}), **FOR_SURFACE, "end": FOR_SURFACE_END}


def pb_model_of(
    dielectric: float, solute_dielectric: float, ionic_strength: float, temperature: float
) -> PBModel:  # fmt: skip
    """Make the model of the method pb, with a 1:1 salt of APBS's usual ions."""
    source = click.get_current_context().get_parameter_source("dielectric")
    water = PBModel.solvent_dielectric if source is click.core.ParameterSource.DEFAULT else dielectric
    return PBModel(solute_dielectric, water, salt_of(ionic_strength), temperature)


def grid_of(
    models: list[Atoms], spacing: float, padding: float | None, origin: tuple[float, ...] | None,
    shape: tuple[int, ...] | None,
) -> Grid:  # fmt: skip
    """Make the grid that the options ask for, around all models."""
    if (origin is None) != (shape is None) or (origin is not None and padding is not None):
        raise click.UsageError("a grid is given by --padding, or by --origin and --shape together")
    if origin is not None and shape is not None:
        return Grid(origin, spacing, shape)
    positions = np.concatenate([atoms.positions for atoms in models])
    together = Atoms(positions=positions, charges=np.zeros(len(positions)))
    return Grid.around(together, DEFAULT_PADDING if padding is None else padding, spacing)
