"""`pele-ocl bench`: timing tables."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from ..bench.systems import SYSTEMS, load
from ..solvent import VARIANTS
from ..variant import PRECISIONS
from .options import debug_option

if TYPE_CHECKING:
    from ..bench.solvent import Timing

HEAD = (
    f"{'structure':14s}{'atoms':>7s}  {'precision':10s}{'variant':12s}{'ms':>12s}{'speed-up':>11s}{'G pairs/s':>11s}"
    f"{'error':>10s}"
)


@click.group()
def bench() -> None:
    """Time the variants beside each other."""


@bench.command()
@click.option("--system", "systems", type=click.Choice(list(SYSTEMS)), multiple=True, help="Structure; default: all.")
@click.option("--variant", "variants", type=click.Choice(list(VARIANTS)), multiple=True, help="Variant; default: all.")
@click.option("--precision", "precisions", type=click.Choice(PRECISIONS), multiple=True, help="Default: both.")
@click.option("--device", metavar="D", help="Index of `pele-ocl devices`, or part of a name; also PELE_OCL_DEVICE.")
@click.option(
    "--runs", type=click.IntRange(min=3), default=5, show_default=True, help="Runs of which the middle ones count."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line instead of the table.")
@debug_option
def solvent(
    systems: tuple[str, ...], variants: tuple[str, ...], precisions: tuple[str, ...], device: str | None, runs: int,
    as_json: bool,
) -> None:  # fmt: skip
    """Born radii by every variant on structures from 96 to 30,211 atoms: the thesis' tables 3.2 and 3.3 anew.

    Times are device times from the first kernel's start to the last one's end: of five runs the fastest and the
    slowest are dropped and the others averaged. Beyond 5,000 atoms `sequential` is timed on a sample of rows and
    scaled, marked *. The error is the worst relative error of a Born radius against the float64 reference, on up to
    512 atoms.
    """
    from ..bench.solvent import measure
    from ..opencl.device import get_device

    chosen = get_device(device)
    chosen_precisions = [p for p in precisions or PRECISIONS if p == "float32" or chosen.has_float64]
    if not as_json:
        click.echo(f"Born radii on {chosen}, sequential on one core of the CPU\n\n{HEAD}")
    for name in systems or SYSTEMS:
        atoms = load(name)
        for precision in chosen_precisions:
            for timing in measure(name, atoms, precision, chosen, variants or tuple(VARIANTS), runs):
                click.echo(json.dumps(asdict(timing), allow_nan=False) if as_json else _line(timing))


def _line(timing: Timing) -> str:
    milliseconds = f"{1e3 * timing.seconds:,.3f}{'*' if timing.sampled else ' '}"
    speedup = "" if timing.speedup is None else f"{timing.speedup:,.1f}x"
    return (
        f"{timing.system:14s}{timing.n_atoms:7,d}  {timing.precision:10s}{timing.variant:12s}{milliseconds:>12s}"
        f"{speedup:>11s}{timing.pairs_per_second / 1e9:11.3f}{timing.error:10.1e}"
    )
