"""Amounts of time, with their units."""

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
    """Count the steps of a run that is given by its steps or by its time.

    time : ps, or a text with its unit, "10ns"; timestep : fs, or a text; either also as a Quantity of OpenMM

    Raises InputError unless one of them is given, and for anything that is not a time.
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
    """Count the steps of a run: their number, or a time with its unit, "10ps", or a Quantity of OpenMM.

    name : of the keyword; timestep : fs. Raises InputError for what is neither.
    """
    if isinstance(value, str) or hasattr(value, "value_in_unit"):
        value = every_of(name, value, timestep)
    return whole_number(name, value, least=least, most=most)


def notes_of_reports(n_steps: int, every: int) -> tuple[str, ...]:
    """Say that a run ends before its first report, so that files have its beginning alone."""
    if every <= n_steps or n_steps == 0:
        return ()
    return (
        f"the run has {n_steps:,} steps and a report every {every:,}, so that trajectories and tables hold the start "
        "alone; choose a smaller `report_every`",
    )
