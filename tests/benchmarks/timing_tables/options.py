"""Options of the timing tables in addition to those of `pele-ocl bench`."""

from __future__ import annotations

from collections.abc import Callable

import click

from pele_ocl.cli.options import Command


def best_run_option(default: int) -> Callable[[Command], Command]:
    """Add --runs, the number of runs of which the fastest is reported."""
    text = "Times to run each; the fastest counts."
    return click.option("--runs", type=click.IntRange(min=1), default=default, show_default=True, help=text)


peers_option = click.option(
    "--peers/--no-peers", default=True, show_default=True, help="Also time OpenMM, if it is installed."
)
