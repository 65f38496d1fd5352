"""Large arrays from a device by way of host memory that it fills: threads copy parts while others come."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .memory import Buffer
from .threads import MOST_COPIERS, copiers
from .timing import Event
from .transfers import Transfers

IN_TURN, LEAST_IN_TURN = 8, 2  # arrays of host memory; fewer of larger slices, lest the host keep many times as much
PAGE = 4096  # bytes of host memory that come at a time, at least


def read_without_padding(
    queue: Transfers, values: NDArray[Any], buffer: Buffer, first: int, shape: tuple[int, int], at_once: int
) -> None:
    """Fill values (n, ny, nx) from slices of a buffer, from its value `first` on, once everything before is done.

    shape : of a slice in the buffer, rows and columns; beyond ny and nx is padding
    at_once : values that are transferred at a time, at least a slice
    """
    per_slice = math.prod(shape)
    step = max(1, at_once // per_slice)
    size, starts = step * per_slice * values.itemsize, range(0, len(values), step)
    under_way = deque[Future[None]]()

    def copy(part: NDArray[Any], staged: NDArray[Any], event: Event) -> None:
        queue.wait(event)
        part[:] = staged[:, : part.shape[1], : part.shape[2]]

    in_turn = min(IN_TURN, max(LEAST_IN_TURN, IN_TURN * at_once // (step * per_slice)))
    with borrowed(queue, size, min(in_turn, len(starts))) as arrays:
        for turn, start in enumerate(starts):
            if len(under_way) == len(arrays):
                under_way.popleft().result()
            part = values[start : start + step]
            room = arrays[turn % len(arrays)][:size].view(values.dtype)
            staged = room[: len(part) * per_slice].reshape(len(part), *shape)
            event = queue.start_read(staged, buffer, first + start * per_slice)
            under_way.append(copiers().submit(copy, part, staged, event))
        while under_way:
            under_way.popleft().result()


def start_making(values: NDArray[Any]) -> list[Future[None]]:
    """Let threads make the memory of an array that nothing was written to: the system does so by pages."""

    def touch(part: NDArray[Any]) -> None:
        part[:: PAGE // part.itemsize] = 0

    return [copiers().submit(touch, part) for part in np.array_split(values.reshape(-1), MOST_COPIERS)]


@contextmanager
def borrowed(queue: Transfers, size: int, count: int) -> Iterator[list[NDArray[np.uint8]]]:
    """Arrays of at least so many bytes, which the device keeps for later reads: to make them takes long."""
    kept = queue.device.staging
    arrays = []
    for _ in range(count):
        try:
            array = kept.popleft()
        except IndexError:  # to ask before would race with other threads
            array = None
        arrays.append(array if array is not None and array.nbytes >= size else queue.host_array((size,), np.uint8))
    yield arrays  # not kept after an error: a read may still be under way
    kept.extend(arrays)
