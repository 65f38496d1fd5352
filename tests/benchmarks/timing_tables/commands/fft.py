"""`python tests/benchmarks/table.py fft`: the ladder of Fourier transforms."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pele_ocl.bench.bounds import mark, refuse_wrong
from pele_ocl.cli.bench.options import as_json_line, exponent, milliseconds, runs_option, variants_option
from pele_ocl.cli.command import EachOnce
from pele_ocl.cli.options import debug_option, device_option, json_option, precisions_option
from pele_ocl.ladder.fft import FFT_VARIANTS

if TYPE_CHECKING:
    from timing_tables.fft import Timing

HEAD = f"{'points':8s}{'precision':11s}{'variant':15s}{'ms':>13s}{'G/s':>9s}{'over scipy':>12s}{'error':>9s}"


@click.command(cls=EachOnce)
@click.option(
    "--points", "sizes", type=click.IntRange(2, 512), multiple=True,
    help="Points along an edge, a product of 2, 3, 5 and 7; default: 64 and 128.",
)  # fmt: skip
@variants_option(FFT_VARIANTS)
@precisions_option("float32")
@device_option()
@runs_option()
@json_option(" a line")
@debug_option
def fft(
    sizes: tuple[int, ...], variants: tuple[str, ...], precisions: tuple[str, ...], device: str | None, runs: int,
    as_json: bool,
) -> None:  # fmt: skip
    """Fourier transforms of a cube of complex numbers by every rung of the ladder, compared with scipy.fft.

    Times are kernel times, averaged over the middle runs. Times of scipy.fft are of calls with two threads. "over
    scipy" is the ratio to that time: below 1 is faster. The rate uses the conventional count of 5 N log2 N operations.
    The error is by norm against NumPy in float64. Errors ten times larger than the tests allow are marked "wrong", and
    the exit code is 1. On GPUs cuFFT is timed, too, if torch or cupy is installed.
    """
    from pele_ocl.opencl.device import get_device
    from timing_tables.fft import measure

    chosen = get_device(device)
    if not as_json:
        click.echo(f"complex numbers, on {chosen}")
        click.echo(HEAD)
    timings: list[Timing] = []
    for points in sizes or (64, 128):
        for precision in precisions or ("float32",):
            for timing in measure(points, precision, chosen, variants or tuple(FFT_VARIANTS), runs):
                click.echo(as_json_line(timing) if as_json else _line(timing))
                timings.append(timing)
    refuse_wrong((f"{timing.variant}, {timing.points}^3, {timing.precision}", timing) for timing in timings)


def _line(timing: Timing) -> str:
    over = "" if timing.over_scipy is None else f"{timing.over_scipy:.2f}"
    return (
        f"{timing.points}^3".ljust(8) + f"{timing.precision:11s}{timing.variant:15s}{milliseconds(timing.seconds):>13s}"
        f"{timing.rate / 1e9:9.2f}{over:>12s}{exponent(timing.error):>9s}{mark(timing)}"
    )
