"""Options about the processes that share a command's work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click

from ..common.errors import KeywordError
from ..jobs import Place, Shard
from .groups import option

Command = Callable[..., Any]

LASTING = "pele_ocl.cluster"  # of click's context: the values of these options by their names
NAMES = ("workers", "scheduler", "shard")
_WORKERS = "Number of processes on this machine, each with its own device or group of cores."
_SCHEDULER = "Dask cluster to compute on: tcp://HOST:PORT, or the scheduler's file."


@dataclass(frozen=True)
class Workers:
    """Options about processes that compute for a command."""

    workers: int | None = option(
        _WORKERS,
        type=click.IntRange(min=1), metavar="N",
    )  # fmt: skip
    scheduler: str | None = option(_SCHEDULER, metavar="ADDRESS")


@dataclass(frozen=True)
class ClusterOptions:
    """Options about processes that share a command's work; None for each that was not given.

    workers : processes of this machine; scheduler : of a Dask cluster; shard : the part of the work to do
    """

    workers: int | None = None
    scheduler: str | None = None
    shard: Shard | None = None

    @property
    def is_remote(self) -> bool:
        """True if other processes compute."""
        return self.workers is not None or self.scheduler is not None

    def place(self, device: str | None) -> Place:
        """Give the place of the computation; device : of --device"""
        return Place(self.workers, self.scheduler, device)

    def refuse(self, reason: str) -> None:
        """Raise for any of these options; reason : why there is no work to share."""
        for name in NAMES:
            if getattr(self, name) is not None:
                raise click.UsageError(f"--{name} shares the work on several structures, or on frames; {reason}")


def cluster_options(command: Command) -> Command:
    """Options --workers, --scheduler and --shard, which asked_of finds; the command gets no parameter of them."""
    for add in reversed(_OPTIONS):
        command = add(command)
    return command


def place_options(command: Command) -> Command:
    """Options --workers and --scheduler, as `cluster_options` has them, of commands without files that shards join."""
    for add in reversed(_OPTIONS[:-1]):
        command = add(command)
    return command


def cluster_options_of(context: click.Context) -> ClusterOptions:
    """Give the options that a command was given."""
    found = ClusterOptions(**context.meta.get(LASTING, {}))
    if found.workers is not None and found.scheduler is not None:
        raise KeywordError("choose one of `workers` and `scheduler`")
    return found


def _remember(context: click.Context, option: click.Parameter, value: object) -> None:
    if value is not None and not context.resilient_parsing:
        given = Shard.of(value) if option.name == "shard" and isinstance(value, str) else value
        context.meta.setdefault(LASTING, {})[option.name] = given


_OPTIONS: tuple[Callable[[Command], Command], ...] = (
    click.option(
        "--workers", type=click.IntRange(min=1), metavar="N", expose_value=False, callback=_remember,
        help=_WORKERS,
    ),
    click.option(
        "--scheduler", metavar="ADDRESS", expose_value=False, callback=_remember,
        help=_SCHEDULER,
    ),
    click.option(
        "--shard", metavar="K/N", expose_value=False, callback=_remember,
        help="Compute part K of N, for SLURM arrays, and write OUT.KofN; `pele-ocl merge` joins the parts.",
    ),
)  # fmt: skip
