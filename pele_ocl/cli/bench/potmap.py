"""`pele-ocl bench potmap`: timing of potential maps."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from ...bench.bounds import mark, refuse_wrong
from ...bench.systems import SYSTEMS, load
from ...grid import Grid
from ...ladder import POTMAP as VARIANTS
from ..command import EachOnce
from ..options import debug_option, device_list, device_option, json_option, precisions_option
from ..terminal import note
from .options import as_json_line, exponent, milliseconds, runs_option, times, variants_option

if TYPE_CHECKING:
    from ...bench.potmap import Timing
    from ...bench.sizes import Group, SizeTime

TIMED = list(VARIANTS)
ON_ONE_CORE = "sequential on one core of the CPU"
HEAD = (
    f"{'precision':10s}{'variant':12s}{'ms':>14s} {'G evals/s':>11s}{'sequential':>12s}{'gather':>9s}{'error':>9s}"
    f"{'books':>7s}"
)


def _say_gone(context: click.Context, parameter: click.Parameter, is_given: bool) -> None:
    """Issue a note that an option of version 0.1, about other programs, has no effect."""
    if is_given:
        note(
            "--no-peers no longer has an effect, because other programs are not timed here; it will be removed in 0.4.0"
        )


def _numbers(context: click.Context, option: click.Parameter, given: str | None) -> tuple[int, ...]:
    """Parse numbers such as 1,2,4."""
    if given is None:
        return ()
    if not re.fullmatch(r"[1-9]\d?(,[1-9]\d?)*", given):
        raise click.BadParameter(f"{given!r} is not a list of numbers up to 99, such as 1,2,4")
    return tuple(map(int, given.split(",")))


def _sizes(context: click.Context, option: click.Parameter, given: str | None) -> tuple[Group, ...]:
    """Parse group sizes such as 8x4,64x1x1."""
    if given is None:
        return ()
    sizes = given.split(",")
    if not all(re.fullmatch(r"[1-9]\d{0,3}(x[1-9]\d{0,3}){0,2}", size) for size in sizes):
        raise click.BadParameter(f"{given!r} is not a list of work-group sizes, such as 8x4,64x1x1")
    padded = ((*map(int, size.split("x")), 1, 1) for size in sizes)
    return tuple((x, y, z) for x, y, z, *_ in padded)


@click.command(cls=EachOnce)
@click.option("--points", type=click.IntRange(1), default=64, show_default=True, help="Points along an edge.")
@click.option(
    "--atoms", "n_atoms", type=click.IntRange(1), default=1024, show_default=True, help="Number of random charges."
)
@click.option(
    "--system",
    type=click.Choice(list(SYSTEMS)),
    help="Use a structure instead of random charges, with points 0.5 A apart up to 10 A around it.",
)
@variants_option(TIMED)
@precisions_option("float32")
@device_option("choices", multiple=True, more=" 0,1 computes the map on both.")
@runs_option()
@click.option(
    "--group",
    "groups",
    metavar="SIZES",
    callback=_sizes,
    help="Print a table for these work-group sizes instead, such as 8x4,32x4,64x1x1.",
)
@click.option(
    "--points-per-item", "points_per_item", metavar="NUMBERS", callback=_numbers,
    help="Print a table for these numbers of points per work-item instead, such as 1,2,4,8.",
)  # fmt: skip
@json_option(" per line")
@click.option("--no-peers", is_flag=True, hidden=True, expose_value=False, callback=_say_gone)
@debug_option
def potmap(
    points: int, n_atoms: int, system: str | None, variants: tuple[str, ...], precisions: tuple[str, ...],
    choices: tuple[str, ...], runs: int, groups: tuple[Group, ...], points_per_item: tuple[int, ...], as_json: bool,
) -> None:  # fmt: skip
    """Compare all variants on a potential map: the ladder of the textbooks, and faster methods.

    Times are the kernels' own, with the middle runs averaged. A variant that would take many seconds is timed on slices
    from the middle of the map and scaled, marked *. Rates are atoms times points per second. "sequential" and "gather"
    are speed-ups over these two, if they are timed. The error is by norm against the float64 reference at 512 points.
    If it is ten times larger than the tests allow, it is marked "wrong", and the exit code is 1. Methods with
    an adjustable accuracy use 1e-4. They do less work than their rates suggest, and so does cutoff, which only includes
    atoms within 12 A, like its reference.
    "books" is what the textbooks measured on a GeForce 8800 in 2007.

    --group and --points-per-item print a table for each rung that supports them, with rates in G evaluations per
    second, one row per work-group size.

    If --device is given several times, such as --device 0 --device 0,1, a table is printed for each; "first" compares
    with the first one.
    """
    from ...bench.potmap import BOOKS, measure, random_system
    from ...bench.sizes import SIZED, measure_sizes
    from ...opencl.device import get_device

    chosen = [[get_device(part) for part in _parts(choice)] for choice in choices or (None,)]
    if system is None:
        atoms, grid = random_system(points, n_atoms)
    else:
        atoms = load(system)
        grid = Grid.around(atoms)
    if groups or points_per_item:
        if len(chosen) > 1 or len(chosen[0]) > 1:
            raise click.UsageError("tables of sizes need a single device")
        for precision in precisions or ("float32",):
            cells = measure_sizes(
                atoms, grid, precision, chosen[0][0], groups or ((32, 4, 1),), points_per_item or (1, 2, 4, 8),
                variants or tuple(SIZED), runs,
            )  # fmt: skip
            _say_sizes(list(cells), f"{len(atoms):,} atoms, {precision}, on {chosen[0][0]}", as_json)
        return
    timings: list[Timing] = []
    first: dict[tuple[str, str], float] = {}
    for devices in chosen:
        where = " + ".join(map(str, devices))
        if not as_json:
            size = " x ".join(f"{n:,}" for n in grid.shape)
            gap = "\n" if timings else ""
            click.echo(f"{gap}{size} points, {len(atoms):,} atoms, on {where}, {_bases(variants)}\n")
            click.echo(HEAD + f"{'first':>8s}" if timings else HEAD)
        for precision in precisions or ("float32",):
            for timing in measure(atoms, grid, precision, devices, variants or TIMED, runs):
                base = first.setdefault((precision, timing.variant), timing.evals_per_second)
                over_first = timing.evals_per_second / base if devices is not chosen[0] else None
                click.echo(as_json_line(timing) if as_json else _line(timing, BOOKS.get(timing.variant), over_first))
                timings.append(timing)
    refuse_wrong((f"{timing.variant}, {timing.precision}, {timing.device}", timing) for timing in timings)


def _say_sizes(cells: list[SizeTime], about: str, as_json: bool) -> None:
    """Print a table for each rung, or JSON."""
    for variant in dict.fromkeys(cell.variant for cell in cells):
        own = [cell for cell in cells if cell.variant == variant]
        if as_json:
            click.echo("\n".join(map(as_json_line, own)))
            continue
        points = list(dict.fromkeys(cell.points_per_item for cell in own))
        click.echo(f"\n{variant}: G evaluations per second, {about}; points per work-item:")
        click.echo(f"{'group':12s}" + "".join(f"{number:>10d}" for number in points))
        for group in dict.fromkeys(cell.group for cell in own):
            rates = [cell.rate for cell in own if cell.group == group]
            row = "".join(f"{'no':>10s}" if rate is None else f"{rate / 1e9:10.3f}" for rate in rates)
            click.echo(f"{'x'.join(map(str, group)):12s}{row}")


def _bases(variants: Sequence[str]) -> str:
    """Return the names of the baseline variants of speed-ups."""
    missing = [name for name in ("sequential", "gather") if variants and name not in variants]
    return f"no speed-up over {' and '.join(missing)} without --variant of it" if missing else ON_ONE_CORE


def _parts(choice: str | None) -> list[str | None]:
    """Return the devices in one --device option."""
    listed = device_list(choice)
    return [*listed] if isinstance(listed, list) else [listed]


def _line(timing: Timing, books: float | None, over_first: float | None) -> str:
    duration = milliseconds(timing.seconds) + ("*" if timing.sampled else " ")
    return (
        f"{timing.precision:10s}{timing.variant:12s}{duration:>15s}{timing.evals_per_second / 1e9:11.3f}"
        f"{times(timing.speedup):>12s}{times(timing.over_gather):>9s}{exponent(timing.error):>9s}"
        f"{'' if books is None else f'{books:.1f}':>7s}{'' if over_first is None else f'{over_first:.2f}x':>8s}"
        f"{mark(timing)}"
    ).rstrip()
