"""The contract of inputs on the command line: findings are told as they come, and --strict refuses them."""

from __future__ import annotations

import click

from ..jobs.checks import Checks as JobChecks
from .options import Command

STRICT = "pele_ocl.strict"  # of click's context


def strict_option(command: Command) -> Command:
    """Option --strict, noted where `Checks` finds it."""

    def remember(context: click.Context, _: click.Parameter, value: bool) -> None:
        context.meta[STRICT] = value

    return click.option(
        "--strict",
        is_flag=True,
        expose_value=False,
        callback=remember,
        help="Fail, instead of printing a note, for atoms too close, open disulphides and unreasonable energies.",
    )(command)


def is_strict() -> bool:
    """Whether --strict was given."""
    return bool(click.get_current_context().meta.get(STRICT))


class Checks(JobChecks):
    """The findings about what a command computes, refused where --strict was given."""

    def __init__(self, name: object) -> None:
        super().__init__(name, is_strict())
