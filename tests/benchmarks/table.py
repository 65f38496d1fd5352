"""Timing tables of energies, minimization, maps with ions, Poisson-Boltzmann and Fourier transforms, with peers.

python tests/benchmarks/table.py energy|minimize|ions|pb|fft [OPTIONS]; --help lists the options of each.

For the ladders of kernels see `pele-ocl bench`.
"""

from __future__ import annotations

from typing import Any

import click
from timing_tables.commands.energy import energy
from timing_tables.commands.fft import fft
from timing_tables.commands.ions import ions
from timing_tables.commands.minimize import minimize
from timing_tables.commands.pb import pb

from pele_ocl.cli import errors_as_sentences


class Tables(click.Group):
    """Prints errors of the library as one sentence, as `pele-ocl` does."""

    def invoke(self, ctx: click.Context) -> Any:
        with errors_as_sentences(ctx):
            return super().invoke(ctx)


tables = Tables("tables", commands=[energy, fft, ions, minimize, pb])

if __name__ == "__main__":
    tables()
