"""Clock of a device."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pyopencl as cl

Event = cl.Event


def seconds_of(event: Event) -> float:
    """Seconds that a command ran. Its queue must take times."""
    return float(event.profile.end - event.profile.start) * 1e-9


def elapsed_seconds(events: Sequence[Event], firsts: set[int], part: slice) -> float:
    """Seconds from the start of a part's first command to the end of its last, with all between.

    firsts : indices of the events of kernels that ran for the first time; the time before them does not count, because
        some runtimes build a kernel as late as that
    """
    first, last, _ = part.indices(len(events))
    bounds = sorted({first, *(k for k in firsts if first < k < last), last})
    stretches = [events[start:stop] for start, stop in pairwise(bounds)]
    return float(sum(some[-1].profile.end - some[0].profile.start for some in stretches)) * 1e-9
