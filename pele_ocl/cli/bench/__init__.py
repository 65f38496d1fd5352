"""`pele-ocl bench`: timing tables."""

from __future__ import annotations

import click

from ..command import debug_option
from .ladders import ladders
from .nonbond import nonbond
from .potmap import potmap
from .solvent import solvent


@click.group()
@debug_option
def bench() -> None:
    """Compare the speed of all variants."""


bench.add_command(solvent)
bench.add_command(nonbond)
bench.add_command(potmap)
bench.add_command(ladders)
