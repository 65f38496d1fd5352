"""The option about the range of colours of a surface."""

from __future__ import annotations

from collections.abc import Callable

import click

from ..view.colouring import LEAST_END, MOST_END
from .options import Command


def range_option(text: str) -> Callable[[Command], Command]:
    """--range, of which the value is `end`."""
    return click.option("--range", "end", type=float, metavar="R", callback=_checked, help=text)


def _checked(_: click.Context, __: click.Parameter, end: float | None) -> float | None:
    """The end, refused before any work is done where it is none, NaN too."""
    if end is not None and not LEAST_END <= end <= MOST_END:
        raise click.BadParameter(f"{end:g} is not a number from {LEAST_END:g} to {MOST_END:g}")
    return end
