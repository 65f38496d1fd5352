"""`pele-ocl check`: checks of user-written kernels."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .command import INPUT, EachOnce
from .options import debug_option, device_option, json_option
from .terminal import say

if TYPE_CHECKING:
    from ..checking import CheckResult

# Same as in pele_ocl.checking.QUANTITIES, without importing NumPy.
NAMES = ("sum", "potmap", "born", "solvent", "pair-energy", "nonbond")
LAUNCHES = ("number", "point", "plane", "atom", "pair", "group", "one")


def _group(context: click.Context, option: click.Parameter, given: str | None) -> tuple[int, ...] | None:
    """Parse a group size such as 64, 16x4 or 16x4x1."""
    if given is None:
        return None
    if not re.fullmatch(r"[1-9]\d{0,4}(x[1-9]\d{0,4}){0,2}", given):
        raise click.BadParameter(f"{given!r} is not a work-group size, such as 64 or 16x4x1")
    return tuple(map(int, given.split("x")))


@click.command(cls=EachOnce)
@click.argument("path", metavar="KERNEL.cl", type=INPUT)
@click.option(
    "--as", "quantity", type=click.Choice(NAMES), required=True,
    help="Quantity that the kernel computes; it determines the allowed arguments: docs/check.md.",
)  # fmt: skip
@click.option("--kernel", metavar="NAME", help="Name of the kernel; required if the file contains several.")
@click.option(
    "--launch", type=click.Choice(LAUNCHES),
    help="What a work-item computes; `group` is a work-group for each atom, `one` a single work-item. docs/check.md "
    "lists the defaults.",
)  # fmt: skip
@click.option("--group", callback=_group, metavar="SIZE", help="Work-items per work-group, such as 64 or 16x4x1.")
@click.option(
    "--points-per-item",
    type=click.IntRange(1, 4096),
    help="Points along x, or numbers of a sum, per work-item; by default the constant POINTS of the kernel.",
)
@device_option()
@click.option(
    "--timing/--no-timing", default=True, show_default=True, help="Time a correct kernel and the built-in variants."
)
@json_option()
@debug_option
def check(
    path: Path, quantity: str, kernel: str | None, launch: str | None, group: tuple[int, ...] | None,
    points_per_item: int | None, device: str | None, timing: bool, as_json: bool,
) -> None:  # fmt: skip
    """Check the kernel in KERNEL.cl against the reference, and report what is wrong.

    It is compiled and run on difficult cases, such as one atom, one more and one less than a work-group, primes, and
    zero charges. If oclgrind is installed, it finds races, invalid accesses and uninitialized values, and reports their
    lines. A correct kernel is timed together with the built-in variants. The exit code is 1 if the kernel is wrong.
    This is not a sandbox: kernels run with your permissions, so only check kernels that you trust.
    """
    from ..checking import check_kernel
    from ..checking.compiling import read_source

    result = check_kernel(
        read_source(path), quantity, kernel=kernel, launch=launch, group=group, points_per_item=points_per_item,
        device=device, timing=timing,
    )  # fmt: skip
    if as_json:
        import json

        click.echo(json.dumps(result.to_json()))
    else:
        for line in _lines(path, result):
            say(line)
    if not result.is_right:
        raise click.exceptions.Exit(1)


def _lines(path: Path, result: CheckResult) -> list[str]:
    """Return a result as lines of text."""
    from ..checking.simulator import INSTALL

    lines = [f"{path.name} as {result.quantity}, on {result.device}"]
    if result.cases:
        right = sum(case.is_right for case in result.cases)
        errors = [case.error for case in result.cases if case.error is not None]
        worst = f", largest relative error {max(errors):.1e}" if errors else ""
        lines.append(f"{right} of {len(result.cases)} sizes correct{worst}")
    if result.is_run and result.simulator is None:
        lines.append(f"no simulator checked for races and invalid accesses: {INSTALL}")
    elif result.is_run:
        lines.append(f"{result.simulator} checked for races, invalid accesses and uninitialized values")
    lines += ["", "Wrong:" if result.findings else "Right."]
    lines += [f"  {finding}" for finding in result.findings]
    lines += [f"  note: {note}" for note in result.notes]
    if result.rungs:
        own = result.rungs[0]
        lines += ["", f"{own.work:40s}{'ms':>10s}{'times as fast':>16s}"]
        lines += [
            f"{rung.name + (', yours' if rung is own else ''):40s}{1e3 * rung.seconds:10.3f}"
            f"{own.seconds / rung.seconds:16.2f}"
            for rung in sorted(result.rungs, key=lambda rung: -rung.seconds)
        ]  # fmt: skip
    return lines
