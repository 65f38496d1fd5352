"""`pele-ocl bench`: timing tables."""

from __future__ import annotations

import click

from .energy import energy
from .fft import fft
from .ions import ions
from .ladders import ladders
from .minimize import minimize
from .nonbond import nonbond
from .pb import pb
from .potmap import potmap
from .solvent import solvent


@click.group()
def bench() -> None:
    """Time the variants beside each other."""


bench.add_command(solvent)
bench.add_command(nonbond)
bench.add_command(energy)
bench.add_command(minimize)
bench.add_command(potmap)
bench.add_command(ions)
bench.add_command(pb)
bench.add_command(fft)
bench.add_command(ladders)
