"""`python tests/benchmarks/table.py minimize`: minimization, compared with OpenMM."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pele_ocl.bench.systems import SYSTEMS
from pele_ocl.cli.bench.options import as_json_line, times
from pele_ocl.cli.command import EachOnce
from pele_ocl.cli.options import debug_option, device_option, json_option
from pele_ocl.common.variant import PRECISIONS
from pele_ocl.minimize import METHODS
from timing_tables.options import peers_option

if TYPE_CHECKING:
    from timing_tables.minimize import Timing

HEAD = (
    f"{'structure':14s}{'atoms':>7s}  {'kJ/mol/nm':>9s}  {'code':16s}{'seconds':>10s}{'speed-up':>10s}"
    f"{'iterations':>12s}{'energy':>13s}{'above':>11s}{'rms':>8s}"
)


@click.command(cls=EachOnce)
@click.option(
    "--system", "systems", type=click.Choice(list(SYSTEMS)), multiple=True, help="Structure; default: ubiquitin."
)
@click.option("--method", "methods", type=click.Choice(list(METHODS)), multiple=True, help="Default: lbfgs.")
@click.option(
    "--tolerance", "tolerances", type=click.FloatRange(min=0, min_open=True), multiple=True,
    help="Rms gradient, kJ/mol/nm; default: 10.",
)  # fmt: skip
@click.option(
    "--noise",
    type=click.FloatRange(min=0),
    default=0.1,
    show_default=True,
    help="Random displacement of the starts, Angstrom.",
)
@click.option(
    "--starts",
    type=click.IntRange(1),
    default=3,
    show_default=True,
    help="Number of starts; each code begins from all of them.",
)
@click.option(
    "--precision",
    type=click.Choice(PRECISIONS),
    default="float32",
    show_default=True,
    help="Working precision of pele-ocl.",
)
@device_option()
@peers_option
@json_option(" a line")
@debug_option
def minimize(
    systems: tuple[str, ...], methods: tuple[str, ...], tolerances: tuple[float, ...], noise: float, starts: int,
    precision: str, device: str | None, peers: bool, as_json: bool,
) -> None:  # fmt: skip
    """Minimization with Amber99SB and OBC II, no cutoff, by pele-ocl and OpenMM from the same starts.

    Times are means over the starts without set-up; the speed-up is over OpenMM's CPU platform in the same run. Final
    energies (kcal/mol) and rms gradients (kJ/mol/nm) are computed in float64 on the CPU. "above" is the mean energy
    above that of OpenMM's CPU platform.
    """
    from pele_ocl.opencl.device import get_device
    from timing_tables.minimize import measure

    chosen = get_device(device)
    if not as_json:
        click.echo(f"Minimization from {noise:g} A of noise on {chosen}\n\n{HEAD}")
    for name in systems or ("ubiquitin",):
        for tolerance in tolerances or (10.0,):
            for timing in measure(name, tolerance, noise, starts, chosen, precision, methods or ("lbfgs",), peers):
                click.echo(as_json_line(timing) if as_json else _line(timing))


def _line(timing: Timing) -> str:
    steps = "" if timing.iterations is None else f"{timing.iterations:,.0f}"
    above = "" if timing.above is None else f"{100 * timing.above:+.4f} %"
    return (
        f"{timing.system:14s}{timing.n_atoms:7,d}  {timing.tolerance:9g}  {timing.code:16s}{timing.seconds:10.3f}"
        f"{times(timing.speedup):>10s}{steps:>12s}{timing.energy:13,.2f}{above:>11s}{timing.rms_gradient:8.3f}"
    )
