"""Options of commands about maps: the grid, units, colours and pictures."""

from __future__ import annotations

from collections.abc import Callable

import click

from ..painting import PROGRAMS
from ..units import POTENTIAL_UNITS
from .command import OUTPUT, command_option
from .options import Command

_UNIT = click.Choice(POTENTIAL_UNITS)
png_option = command_option(
    "--png", type=OUTPUT, metavar="FILE", help="Draw the three central slices; needs matplotlib.", essential=True
)


def spacing_options(padding: float | None) -> Callable[[Command], Command]:
    """Add --spacing and --padding of a grid around a molecule. padding : the default, None for 10 in the help text"""
    width = "Distance from the molecule to the boundary of the grid, Angstrom" + (
        "; 10 by default." if padding is None else "."
    )

    def add(command: Command) -> Command:
        pad = command_option(
            "--padding", type=float, default=padding, show_default=padding is not None, help=width, essential=True
        )
        text = "Distance between neighbouring points of the grid, Angstrom."
        return command_option("--spacing", type=float, default=0.5, show_default=True, help=text, essential=True)(
            pad(command)
        )

    return add


def unit_option(text: str) -> Callable[[Command], Command]:
    """Add --unit, for the values written."""
    return command_option("--unit", "unit", type=_UNIT, help=text, former=("--units",))


def from_unit_option(of: str) -> Callable[[Command], Command]:
    """Add --from-unit, for the values in the file `of`."""
    text = f"Unit of the values in {of}, if the file does not name it."
    return command_option("--from-unit", "from_unit", type=_UNIT, help=text, former=("--from-units",))


def color_option(default: str = "") -> Callable[[Command], Command]:
    """Add --color-max. default : description of the default in the help text"""
    text = f"Colours range from -C to C; by default {default}chosen from the values."
    return command_option("--color-max", "color_max", type=float, metavar="C", help=text, former=("--range",))


def scene_option(command: Command) -> Command:
    """Add --scene, for commands that write maps."""
    text = "Write a script next to the map for a program that shows it on the surface. Can be given several times."
    return command_option("--scene", type=click.Choice(list(PROGRAMS)), multiple=True, help=text, essential=True)(
        command
    )
