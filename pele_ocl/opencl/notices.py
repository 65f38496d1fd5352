"""Notices to the calling program; importing this module does not load OpenCL."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# Processor time, since other programs make loading slow, too. Loading a program from the cache of pele-ocl or of the
# runtime takes about 0.1 s.
COMPILED_SECONDS = 0.3


def _unheard(device: str) -> None:
    """Ignore the notice."""


# Called with the device name after a program was compiled; further compilations usually follow.
compiling: Callable[[str], None] = _unheard


@contextmanager
def building(device: str) -> Iterator[None]:
    """Call `compiling` if the block takes so long that a program must have been compiled."""
    start = time.thread_time()
    yield
    if time.thread_time() - start > COMPILED_SECONDS:
        compiling(device)
