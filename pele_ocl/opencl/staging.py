"""Large arrays from a device by way of host memory that it fills by itself, a part while another one is copied."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .memory import Buffer
from .timing import Event
from .transfers import Transfers

IN_TURN = 2  # arrays of host memory


def read_without_padding(
    run: Transfers, values: NDArray[Any], buffer: Buffer, first: int, shape: tuple[int, int], at_once: int
) -> None:
    """Fill values (n, ny, nx) from slices of a buffer, from its value `first` on, once everything before is done.

    shape : of a slice in the buffer, rows and columns, of which those behind ny and nx are padding
    at_once : values that are transferred at a time, at least a slice
    """
    per_slice = math.prod(shape)
    step = max(1, at_once // per_slice)
    waiting: deque[tuple[NDArray[Any], NDArray[Any], Event]] = deque()

    def settle() -> None:
        part, staged, event = waiting.popleft()
        run.wait(event)
        part[:] = staged[:, : part.shape[1], : part.shape[2]]

    size = step * per_slice * values.itemsize
    with _borrowed(run, size) as arrays:
        for turn, start in enumerate(range(0, len(values), step)):
            part = values[start : start + step]
            room = arrays[turn % IN_TURN][:size].view(values.dtype)
            staged = room[: len(part) * per_slice].reshape(len(part), *shape)
            waiting.append((part, staged, run.start_read(staged, buffer, first + start * per_slice)))
            if len(waiting) == IN_TURN:
                settle()
        while waiting:
            settle()


@contextmanager
def _borrowed(run: Transfers, size: int) -> Iterator[list[NDArray[np.uint8]]]:
    """Arrays of at least so many bytes, which the device keeps for later reads: to make them takes long."""
    kept = run.device.staging
    arrays = []
    for _ in range(IN_TURN):
        try:
            array = kept.popleft()
        except IndexError:  # to ask before would race with other threads
            array = None
        arrays.append(array if array is not None and array.nbytes >= size else run.host_array((size,), np.uint8))
    yield arrays  # not kept after an error: a read may still be under way
    kept.extend(arrays)
