"""Notices of the runtime to the program that uses it, which may listen before OpenCL is loaded."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# A program that is found compiled, in our cache or that of the runtime, is there in a tenth of a second.
COMPILED_SECONDS = 0.3


def _unheard(device: str) -> None:
    """Listen to nothing."""


# Called with a device's name after a program was compiled for it; where one was, others follow.
compiling: Callable[[str], None] = _unheard


@contextmanager
def building(device: str) -> Iterator[None]:
    """Tell the listener if the block, which builds a program for a device, takes so long that it was compiled."""
    start = time.perf_counter()
    yield
    if time.perf_counter() - start > COMPILED_SECONDS:
        compiling(device)
