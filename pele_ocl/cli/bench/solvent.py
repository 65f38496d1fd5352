"""`pele-ocl bench solvent`: timing of Born radii."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ...bench.bounds import mark, refuse_wrong
from ...bench.systems import SYSTEMS, load
from ...common.variant import PRECISIONS
from ...ladder import SOLVENT as VARIANTS
from ..command import EachOnce
from .options import SpeedUps, as_json_line, bench_options, exponent, first_of, group_option, milliseconds

if TYPE_CHECKING:
    from ...bench.solvent import Timing
    from ...opencl.device import Device

HEAD = (
    f"{'structure':14s}{'atoms':>7s}  {'precision':10s}{'variant':12s}{'ms':>12s}{'speed-up':>11s}{'G pairs/s':>11s}"
    f"{'error':>10s}"
)
BASES = {"sequential": "sequential on one core of the CPU"}


@click.command(cls=EachOnce)
@bench_options(VARIANTS)
@click.option(
    "--why", "is_why", is_flag=True, help="Print a sentence about what limits each float32 row, and what was measured."
)
@group_option("`pair`; by default 256, as in the thesis")
def solvent(
    systems: tuple[str, ...], variants: tuple[str, ...], precisions: tuple[str, ...], device: str | None, runs: int,
    as_json: bool, is_why: bool, group: int | None,
) -> None:  # fmt: skip
    """Compare all variants of Born radii on 96 to 30,211 atoms, as in tables 3.2 and 3.3 of the thesis.

    Times are device times from the first kernel's start to the last one's end. The fastest and the slowest run are
    dropped and the others averaged. Beyond 5,000 atoms `sequential` is timed on a sample of rows and scaled, marked *.
    Speed-ups are over the first variant of a structure, `sequential` if that is timed. The error is the worst relative
    error of a Born radius against the float64 reference, on up to 512 atoms. One ten times larger than the tests allow
    is marked "wrong", and the exit code is 1.
    """
    from ...bench.groups import with_groups
    from ...bench.solvent import measure
    from ...opencl.device import get_device

    chosen = with_groups(get_device(device), group)
    chosen_precisions = [p for p in precisions or PRECISIONS if p == "float32" or chosen.has_float64]
    variants = variants or tuple(VARIANTS)
    if not as_json:
        base = first_of(VARIANTS, variants)
        click.echo(f"Born radii on {chosen}, speed-up over {BASES.get(base, base)}\n\n{HEAD}")
    timings: list[tuple[str, Timing]] = []
    speed_ups = SpeedUps()
    for name in systems or SYSTEMS:
        atoms = load(name)
        for precision in chosen_precisions:
            for timing in measure(name, atoms, precision, chosen, variants, runs):
                click.echo(as_json_line(timing) if as_json else _line(timing, speed_ups))
                timings.append((f"{timing.variant}, {precision}, {name}", timing))
    refuse_wrong(timings)
    if is_why and not as_json:
        _say_why([timing for _, timing in timings if timing.precision == "float32"], chosen)


def _say_why(timings: list[Timing], device: Device) -> None:
    """Print what limits the variants for the last structure, and a summary."""
    from ...bench.ceilings import measure_ceilings
    from ...bench.ladders import RungTime, counts_of, what_was_seen, why

    last = [timing for timing in timings if timing.system == timings[-1].system]
    rungs = [
        RungTime("solvent", each.variant, each.seconds, each.n_atoms**2, counts_of("solvent", each.variant))
        for each in last
    ]
    if not rungs:
        return
    ceilings = measure_ceilings(device)
    click.echo("\n" + "\n".join(why(rung, ceilings) for rung in rungs))
    counted = [rung for rung in rungs if rung.counts is not None]
    if len(counted) > 1:
        click.echo("\n" + what_was_seen(counted, ceilings))


def _line(timing: Timing, speed_ups: SpeedUps) -> str:
    speed_up = speed_ups.of(timing.seconds, timing.system, timing.precision)
    duration = milliseconds(timing.seconds) + ("*" if timing.sampled else " ")
    return (
        f"{timing.system:14s}{timing.n_atoms:7,d}  {timing.precision:10s}{timing.variant:12s}{duration:>12s}"
        f"{speed_up:>11s}{timing.pairs_per_second / 1e9:11.3f}{exponent(timing.error):>10s}{mark(timing)}"
    )
