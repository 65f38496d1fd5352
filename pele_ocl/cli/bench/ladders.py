"""`pele-ocl bench ladders`: all ladders compared with the peak rates of a device."""

from __future__ import annotations

from pathlib import Path

import click

from ..command import OUTPUT, EachOnce
from ..options import debug_option, device_option, json_option
from .options import as_json_line, milliseconds, runs_option

HEAD = f"{'ladder':9s}{'rung':15s}{'ms':>12s}{'G evals/s':>11s}{'roots':>9s}{'mul-adds':>10s}{'bytes':>9s}"


@click.command(cls=EachOnce)
@click.option(
    "--chart", "charts", type=OUTPUT, multiple=True, metavar="FILE", help="Draw a roofline: .png, .svg, .pdf."
)
@click.option("--dark", is_flag=True, help="Draw the roofline for pages with a dark background.")
@click.option("--why", "is_why", is_flag=True, help="Print a sentence about what limits each rung.")
@device_option()
@runs_option(default=3)
@json_option(" per line")
@debug_option
def ladders(
    charts: tuple[Path, ...], dark: bool, is_why: bool, device: str | None, runs: int, as_json: bool
) -> None:  # fmt: skip
    """Compare all ladders in float32 with the highest rates of the device.

    The ceilings are measured first: reciprocal roots, multiply-adds and bytes per second, each by a kernel that does
    nothing else. An evaluation is an atom at a point, or a pair of atoms. The last columns are the shares of the
    ceilings that a rung reaches. A simulator counted the work for an evaluation. A share of bytes above 100 %
    is due to caches; for other work it means that a rung needs fewer operations than were counted.
    """
    from ...bench.ceilings import measure_ceilings
    from ...bench.ladders import KINDS, measure_ladders, why
    from ...opencl.device import get_device

    chosen = get_device(device)
    ceilings = measure_ceilings(chosen)
    if not as_json:
        amounts = ", ".join(f"{getattr(ceilings, kind) / 1e9:,.1f} G {word}" for kind, word in KINDS.items())
        click.echo(f"{chosen}: at most {amounts} a second\n\n{HEAD}")
    else:
        click.echo(as_json_line(ceilings))
    rungs = []
    for rung in measure_ladders(chosen, runs):
        rungs.append(rung)
        if as_json:
            click.echo(as_json_line(rung))
            continue
        shares = "".join(
            f"{100 * share:{width}.0f} %"
            for share, width in zip(rung.shares(ceilings).values() if rung.counts else (), (7, 8, 7), strict=False)
        )
        rate = f"{milliseconds(rung.seconds):>12s}{rung.rate / 1e9:11.3f}"
        click.echo(f"{rung.ladder:9s}{rung.rung:15s}{rate}{shares}")
    if is_why and not as_json:
        click.echo("\n" + "\n".join(f"{rung.ladder}/{why(rung, ceilings)}" for rung in rungs))
    for chart in charts:
        from ...bench.roofline import draw_ladders

        draw_ladders(chart, rungs, ceilings, is_dark=dark)
