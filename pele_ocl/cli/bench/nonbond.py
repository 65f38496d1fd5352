"""`pele-ocl bench nonbond`: timing of gradients over pair lists."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import click

from ...bench.bounds import mark, refuse_wrong
from ...bench.systems import SYSTEMS, load
from ...common.variant import PRECISIONS
from ...ladder import NONBOND as VARIANTS
from ..command import EachOnce
from .options import SpeedUps, as_json_line, bench_options, exponent, first_of, group_option, milliseconds

if TYPE_CHECKING:
    from ...bench.nonbond import Timing

HEAD = (
    f"{'list':10s}{'gradient':10s}{'precision':10s}{'variant':15s}{'prepare ms':>12s}{'ms':>12s}{'speed-up':>11s}"
    f"{'G pairs/s':>11s}{'ns/pair':>11s}{'energy':>9s}{'gradient':>10s}"
)


@click.command(cls=EachOnce)
@bench_options(VARIANTS)
@click.option(
    "--cutoff", type=float, default=12.0, show_default=True, help="Distance at which the pair lists end, Angstrom."
)
@click.option("--order", "orders", type=click.Choice(["sorted", "shuffled"]), multiple=True, help="Default: both.")
@group_option("the thesis' kernels with groups of a fixed size; by default 128")
def nonbond(
    systems: tuple[str, ...], variants: tuple[str, ...], precisions: tuple[str, ...], device: str | None, runs: int,
    as_json: bool, cutoff: float, orders: tuple[str, ...], group: int | None,
) -> None:  # fmt: skip
    """Compare all variants of energy and gradient over pair lists, as in tables 4.2 to 4.9 of the thesis.

    With and without gradient, on lists in the order of their atoms and on shuffled ones. "prepare" is done once per
    list, "ms" is an evaluation; both are device times. The fastest and the slowest run are dropped and the others
    averaged. Speed-ups are over the first variant of a list, `sequential` if that is timed. The last columns are errors
    against the float64 reference, of the worst energy and of the gradient by norm. One ten times larger than the tests
    allow is marked "wrong", and the exit code is 1. `naive` shows what a race costs and is "inexact" by design.
    """
    from ...bench.groups import with_groups
    from ...bench.nonbond import Case, measure
    from ...opencl.device import get_device

    chosen = with_groups(get_device(device), group)
    chosen_precisions = [p for p in precisions or PRECISIONS if p == "float32" or chosen.has_float64]
    variants = variants or tuple(VARIANTS)
    timings: list[tuple[str, Timing]] = []
    for name in systems or SYSTEMS:
        case = Case.of(name, load(name), cutoff, chosen)
        if len(case) == 0:
            click.echo(f"Note: {name} has no pairs within {cutoff:g} A; choose a larger --cutoff", err=True)
            continue
        if not as_json:
            click.echo(
                f"\n{name}: {len(case.atoms):,} atoms, {len(case):,} pairs within {cutoff:g} A, on {chosen}\n"
                f"Speed-up over {first_of(VARIANTS, variants)}\n{HEAD}"
            )
        speed_ups = SpeedUps()
        for order, with_gradient, precision in product(orders or case.lists, (False, True), chosen_precisions):
            for timing in measure(case, order, precision, with_gradient, chosen, variants, runs):
                click.echo(as_json_line(timing) if as_json else _line(timing, speed_ups))
                timings.append((f"{timing.variant}, {precision}, {name}, {order} list", timing))
    refuse_wrong(timings)


def _line(timing: Timing, speed_ups: SpeedUps) -> str:
    gradient = "with" if timing.with_gradient else "without"
    errors = f"{exponent(timing.energy_error):>9s}{exponent(timing.gradient_error):>10s}{mark(timing)}"
    group = timing.order, timing.precision, timing.with_gradient
    speed_up = speed_ups.of(timing.seconds, *group) if timing.variant in VARIANTS else ""
    return (
        f"{timing.order:10s}{gradient:10s}{timing.precision:10s}{timing.variant:15s}"
        f"{milliseconds(timing.prepare_seconds):>12s}{milliseconds(timing.seconds):>12s}{speed_up:>11s}"
        f"{timing.pairs_per_second / 1e9:11.3f}{1e9 / timing.pairs_per_second:11.3f}{errors}"
    )
