"""Lengths of runs, given in steps or in time units."""

from __future__ import annotations

import re

from ..common.arguments import number as number_of
from ..common.arguments import whole_number
from ..common.errors import InputError, KeywordError
from ..common.textfiles import number
from ..units import in_unit
from .settings import MOST_STEPS, every_of

_FS = {"fs": 1.0, "ps": 1e3, "ns": 1e6, "us": 1e9}


def steps_of(steps: int | None, time: float | str | None, timestep: float | str) -> int:
    """Return the number of steps of a run, given as a number of steps or as a time.

    time : in ps, or a string with a unit such as "10ns"; timestep : in fs, or a string. Both may be OpenMM Quantities

    Raises InputError unless exactly one of `steps` and `time` is given, and for an invalid time.
    """
    if (steps is None) == (time is None):
        raise KeywordError("give one of `steps` and `time`")
    if steps is not None:
        return whole_number("steps", steps, least=1, most=MOST_STEPS)
    time, step = time if isinstance(time, str) else in_unit("time", time, "ps"), in_unit("timestep", timestep, "fs")
    words = f"{time} ps" if isinstance(time, int | float) else str(time)
    found = re.fullmatch(r"\s*([-+.\deE]+?)\s*(fs|ps|ns|us)\s*", words)
    value = number(found[1]) if found else None
    if found is None or value is None or not 0 < value < 1e12:
        raise InputError(f"`time` is {str(time)[:40]!r}; expected a time above 0 with its unit: 500ps, 10ns")
    step = number_of("timestep", step, "a time above 0", above=0.0)
    return whole_number("steps", max(1, round(value * _FS[found[2]] / step)), most=MOST_STEPS)


def steps_or_time(name: str, value: object, timestep: float, *, least: int = 0, most: int = MOST_STEPS) -> int:
    """Return a number of steps, given as such, as a time with a unit such as "10ps", or as an OpenMM Quantity.

    name : the keyword, for error messages; timestep : in fs. Raises InputError for an invalid value.
    """
    if isinstance(value, str) or hasattr(value, "value_in_unit"):
        value = every_of(name, value, timestep)
    return whole_number(name, value, least=least, most=most)


def notes_of_reports(n_steps: int, every: int) -> tuple[str, ...]:
    """Return a note if the run ends before its first report, so that files contain only the initial state."""
    if every <= n_steps or n_steps == 0:
        return ()
    return (
        f"the run has {n_steps:,} steps and a report every {every:,}, so trajectories and tables would contain only "
        "the start; choose a smaller `report_every`",
    )
