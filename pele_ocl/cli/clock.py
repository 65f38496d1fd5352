"""Time since the command was started, the start of Python included."""

from __future__ import annotations

import os
import time

_LOADED = time.perf_counter()
_start = _LOADED


def begin(start: float) -> None:
    """Count from this time on, on the clock of time.perf_counter."""
    global _start
    _start = start


def process_start() -> float:
    """Tell when this process, or if unknown this module, was started, on the clock of time.perf_counter."""
    try:
        with open("/proc/self/stat", encoding="ascii", errors="replace") as file:
            ticks = int(file.read().rpartition(")")[2].split()[19])
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):
        return _LOADED
    start = time.perf_counter() - age
    return start if 0 <= _LOADED - start < 60 else _LOADED  # a container may have another clock


def elapsed() -> float:
    """Seconds since the command was started; Commands.main records when that was."""
    return time.perf_counter() - _start
