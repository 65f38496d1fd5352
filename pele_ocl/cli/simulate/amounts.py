"""Amounts of options: times with their units, temperatures, points of a schedule, replicas of a part."""

from __future__ import annotations

import re

import click

from ...common.errors import InputError
from ...common.textfiles import number
from ..cluster import ClusterOptions

_FS = {"fs": 1.0, "ps": 1e3, "ns": 1e6, "us": 1e9}


def steps_of(steps: int | None, length: str | None, timestep: float) -> int:
    """Count the steps of --steps, or of --time in steps of so many fs. Raises UsageError unless one is given."""
    if (steps is None) == (length is None):
        raise click.UsageError("give one of --steps and --time")
    if steps is not None:
        return steps
    assert length is not None
    found = re.fullmatch(r"\s*([-+.\deE]+?)\s*(fs|ps|ns|us)\s*", length)
    value = number(found[1]) if found else None
    if found is None or value is None or not 0 < value < 1e12:
        raise InputError(f"--time {length[:40]!r}: a time above 0 with its unit is needed: 500ps, 10ns")
    if not timestep > 0:
        raise InputError(f"timestep is {timestep:g}; a time above 0 is needed")
    return max(1, round(value * _FS[found[2]] / timestep))


def temperatures_of(listed: str | None, one: float | None) -> list[float] | None:
    """Read --temperatures, None if there are none; one : --temperature, None if it was not given"""
    if listed is None:
        return None if one is None else [one]
    values = [number(word.strip()) for word in listed.split(",")]
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        raise InputError(f"--temperatures {listed[:60]!r}: numbers with commas between them are needed, K")
    return known


def annealing_of(text: str) -> list[list[float]]:
    """Read points PS:K with commas between them."""
    points = [[number(word.strip()) for word in point.split(":")] for point in text.split(",")]
    found = [[value for value in point if value is not None] for point in points]
    if any(len(point) != 2 for point in points) or any(len(point) != 2 for point in found):
        raise InputError(f"--anneal {text[:60]!r}: points PS:K with commas between them are needed: 0:600,80:300")
    return found


def together_of(given: int | None, replicas: int, n_rungs: int, cluster: ClusterOptions) -> int | None:
    """Count the replicas of a part: --together, or equal shares of whole ladders for --workers; None for all.

    Raises UsageError for a cluster, whose workers may come and go.
    """
    if given is not None or not cluster.is_remote:
        return given
    if cluster.workers is None:
        raise click.UsageError("--scheduler needs --together N, how many replicas a worker moves at a time")
    n_ladders = -(-replicas // n_rungs)
    return n_rungs * -(-n_ladders // cluster.workers)
