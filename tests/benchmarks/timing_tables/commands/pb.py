"""`python tests/benchmarks/table.py pb`: the ladder of solvers of the Poisson-Boltzmann equation, and APBS."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pele_ocl.bench.bounds import mark, refuse_wrong
from pele_ocl.bench.systems import SYSTEMS, load
from pele_ocl.cli.bench.options import as_json_line, exponent, milliseconds
from pele_ocl.cli.command import OUTPUT, EachOnce
from pele_ocl.cli.options import debug_option, device_option, json_option
from pele_ocl.pb import SOLVERS
from pele_ocl.pb_model import lowered_shape
from timing_tables.options import best_run_option

if TYPE_CHECKING:
    from timing_tables.pb import Timing

HEAD = f"{'solver':12s}{'asked':>9s}{'residual':>10s}{'iterations':>12s}{'ms':>13s}{'over apbs':>11s}{'error':>9s}"


@click.command(cls=EachOnce)
@click.option(
    "--system", type=click.Choice(list(SYSTEMS)), default="ubiquitin", show_default=True, help="Structure in the salt."
)
@click.option(
    "--points", type=click.IntRange(17, 513), default=65, show_default=True,
    help="Points along an edge, lowered as APBS lowers them.",
)  # fmt: skip
@click.option("--solver", "solvers", type=click.Choice(list(SOLVERS)), multiple=True, help="Default: all.")
@click.option(
    "--residual", "residuals", type=click.FloatRange(1e-6, 0.1), multiple=True,
    help="Relative residual to stop at; default: 1e-2, 1e-4 and 1e-6.",
)  # fmt: skip
@click.option(
    "--chart", "charts", type=OUTPUT, multiple=True, metavar="FILE",
    help="Draw the residuals against the seconds: .png, .svg, .pdf.",
)  # fmt: skip
@device_option()
@best_run_option(default=1)
@json_option(" a line")
@debug_option
def pb(
    system: str, points: int, solvers: tuple[str, ...], residuals: tuple[float, ...], charts: tuple[Path, ...],
    device: str | None, runs: int, as_json: bool,
) -> None:  # fmt: skip
    """Solve the Poisson-Boltzmann equation by every rung of the ladder, compared with APBS if it is installed.

    The problem is an input file of APBS: a cube of points that extends 10 A beyond the molecule, with surface smol,
    charges spl2, boundary sdh and 0.15 mol/L of salt. Times are wall times of the solver, on all cores of a CPU. Times
    of `apbs` are those of its solver in one thread. "over apbs" is the ratio to that time: below 1 is faster. The error
    is that of the energy, relative to mgcg at a smaller residual. If one is too large, the row says "wrong" and the
    exit code is 1.
    """
    from pele_ocl.opencl.device import get_device
    from timing_tables.pb import RESIDUALS, draw, measure

    chosen = get_device(device)
    n, _, _ = lowered_shape([points] * 3)
    atoms = load(system)
    if not as_json:
        click.echo(f"{system}: {len(atoms):,} atoms, {n}^3 points, on {chosen}")
        click.echo(HEAD)
    timings: list[Timing] = []
    wanted = sorted(residuals or RESIDUALS, reverse=True)
    for timing in measure(system, atoms, n, solvers or tuple(SOLVERS), wanted, chosen, runs):
        click.echo(as_json_line(timing) if as_json else _line(timing))
        timings.append(timing)
    for chart in charts:
        draw(chart, timings)
    refuse_wrong((f"{timing.solver} to {timing.tolerance:g}", timing) for timing in timings)


def _line(timing: Timing) -> str:
    over = "" if timing.over_apbs is None else f"{timing.over_apbs:.2f}"
    iterations = "" if timing.iterations is None else f"{timing.iterations:,}"
    return (
        f"{timing.solver:12s}{timing.tolerance:9.0e}{exponent(timing.residual):>10s}{iterations:>12s}"
        f"{milliseconds(timing.seconds):>13s}{over:>11s}{exponent(timing.error):>9s}{mark(timing)}"
    )
