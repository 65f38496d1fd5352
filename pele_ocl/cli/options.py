"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from ..variant import PRECISIONS

Command = TypeVar("Command", bound=Callable[..., Any])

PATH = click.Path(path_type=Path)


def _together(options: list[Callable[[Any], Any]]) -> Callable[[Command], Command]:
    """One decorator that adds several options, in the order they are listed."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


structure_options = _together(
    [
        click.option(
            "--model", type=click.IntRange(min=1), help="Number of the model to read, in a file with several."
        ),
        click.option(
            "--forcefield",
            metavar="NAME",
            help="amber99sb, the default, or a folder of PELE's Templates: OPLS2005, ...",
        ),
        click.option(
            "--radii", type=click.Choice(["amber", "pele"]), default="amber", show_default=True, help="GB radii set."
        ),
        click.option(
            "--templates", type=PATH, multiple=True, metavar="PATH", help="PELE template, or a folder of them."
        ),
        click.option("--obc", type=PATH, multiple=True, metavar="FILE", help="OBC table, text or JSON."),
        click.option("--pele-data", type=PATH, multiple=True, metavar="DIR", help="PELE Data or DataLocal folder."),
        click.option("--fallback", is_flag=True, help="Radii by element and bonds for atoms without an OBC row."),
    ]
)

run_options = _together(
    [
        click.option(
            "--precision",
            type=click.Choice(PRECISIONS),
            default="float32",
            show_default=True,
            help="Working precision.",
        ),
        click.option(
            "--device", metavar="D", help="Index of `pele-ocl devices`, or part of a name; also PELE_OCL_DEVICE."
        ),
    ]
)

report_options = _together(
    [
        click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of the table."),
        click.option("-v", "--verbose", is_flag=True, help="Say more: parameters, steps, times."),
        click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of an error."),
    ]
)
