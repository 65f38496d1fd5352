"""Options and formats that the timing tables share."""

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
    """Add --runs, whose middle ones are averaged."""
    text = "Times to run each; the fastest and the slowest are dropped."
    return click.option("--runs", type=click.IntRange(min=3), default=default, show_default=True, help=text)


def variants_option(variants: Iterable[str]) -> Callable[[Command], Command]:
    """Add --variant, passed as `variants`."""
    choice = click.Choice(list(variants))
    return click.option("--variant", "variants", type=choice, multiple=True, help="Variant; default: all.")


def group_option(kernels: str) -> Callable[[Command], Command]:
    """Add --group, passed as `group`; kernels : whose groups they are"""
    text = f"Work-items per work-group in {kernels}, such as 64, 128 or 256."
    return click.option("--group", type=click.IntRange(min=1), metavar="N", help=text)


def bench_options(variants: Iterable[str]) -> Callable[[Command], Command]:
    """Add options for structures, variants, precisions and device; how often; and --json."""
    options: list[Callable[[Command], Command]] = [
        click.option(
            "--system", "systems", type=click.Choice(list(SYSTEMS)), multiple=True, help="Structure; default: all."
        ),
        variants_option(variants),
        precisions_option(),
        device_option(),
        runs_option(),
        json_option(" a line"),
        debug_option,
    ]  # fmt: skip

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def as_json_line(timing: DataclassInstance) -> str:
    """A timing as one JSON object; what is missing, or not a number, is null."""
    return json.dumps(without_nan(asdict(timing)), allow_nan=False)


def without_nan(value: object) -> object:
    """Null for numbers that JSON does not have, which a code that fails may give."""
    if isinstance(value, Mapping):
        return {name: without_nan(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


class SpeedUps:
    """Return how many times faster each row is than the first of its group: `sequential`, if that is timed."""

    def __init__(self) -> None:
        self._first: dict[tuple[object, ...], float] = {}

    def of(self, seconds: float, *group: object) -> str:
        """Write the speed-up of a row."""
        return times(self._first.setdefault(group, seconds) / seconds)


def first_of(variants: Iterable[str], chosen: Sequence[str]) -> str:
    """Find the variant that speed-ups are over: the first of the table that is timed."""
    return next(name for name in variants if name in chosen)


def milliseconds(seconds: float) -> str:
    """Seconds as `1,234.567`."""
    return f"{1e3 * seconds:,.3f}"


def times(speedup: float | None) -> str:
    """A speed-up as `12.3x`; blank where there is none."""
    return "" if speedup is None else f"{speedup:,.1f}x"


def exponent(error: float | None) -> str:
    """An error as `1.2e-06`; blank where there is none."""
    return "" if error is None else f"{error:.1e}"
