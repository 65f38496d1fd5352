"""Options and number formats common to all timing tables."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from ...bench.systems import SYSTEMS
from ..options import Command, debug_option, device_option, json_option, precisions_option

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


def runs_option(default: int = 5) -> Callable[[Command], Command]:
    """Add --runs, the number of runs for a trimmed mean."""
    text = "Times to run each; the fastest and the slowest are dropped."
    return click.option("--runs", type=click.IntRange(min=3), default=default, show_default=True, help=text)


def variants_option(variants: Iterable[str]) -> Callable[[Command], Command]:
    """Add --variant, passed as `variants`."""
    choice = click.Choice(list(variants))
    return click.option("--variant", "variants", type=choice, multiple=True, help="Variant; default: all.")


def group_option(kernels: str) -> Callable[[Command], Command]:
    """Add --group, passed as `group`. kernels : the kernels concerned, for the help text"""
    text = f"Work-items per work-group in {kernels}, such as 64, 128 or 256."
    return click.option("--group", type=click.IntRange(min=1), metavar="N", help=text)


def bench_options(variants: Iterable[str]) -> Callable[[Command], Command]:
    """Add options for structures, variants, precisions, device and number of runs, and --json."""
    options: list[Callable[[Command], Command]] = [
        click.option(
            "--system", "systems", type=click.Choice(list(SYSTEMS)), multiple=True, help="Structure; default: all."
        ),
        variants_option(variants),
        precisions_option(),
        device_option(),
        runs_option(),
        json_option(" per line"),
        debug_option,
    ]  # fmt: skip

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def as_json_line(timing: DataclassInstance) -> str:
    """Return a timing as a JSON object; missing values and NaN become null."""
    return json.dumps(without_nan(asdict(timing)), allow_nan=False)


def without_nan(value: object) -> object:
    """Replace NaN and infinite numbers by None, because JSON does not support them."""
    if isinstance(value, Mapping):
        return {name: without_nan(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


class SpeedUps:
    """Compute speed-ups relative to the first row of each group, which is `sequential` if that is timed."""

    def __init__(self) -> None:
        self._first: dict[tuple[object, ...], float] = {}

    def of(self, seconds: float, *group: object) -> str:
        """Return the formatted speed-up of a row."""
        return times(self._first.setdefault(group, seconds) / seconds)


def first_of(variants: Iterable[str], chosen: Sequence[str]) -> str:
    """Return the baseline variant of speed-ups, the first in the table that is timed."""
    return next(name for name in variants if name in chosen)


def milliseconds(seconds: float) -> str:
    """Format a time in s as milliseconds: `1,234.567`."""
    return f"{1e3 * seconds:,.3f}"


def times(speedup: float | None) -> str:
    """Format a speed-up as `12.3x`; blank for None."""
    return "" if speedup is None else f"{speedup:,.1f}x"


def exponent(error: float | None) -> str:
    """Format an error as `1.2e-06`; blank for None."""
    return "" if error is None else f"{error:.1e}"
