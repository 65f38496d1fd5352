"""Work in a separate process, whose hangs and crashes do not affect this one."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures import TimeoutError as NotDone
from multiprocessing import get_context
from typing import TypeVar

T = TypeVar("T")
KILL = getattr(signal, "SIGKILL", signal.SIGTERM)  # Windows has no other


def apart(most_seconds: float, work: Callable[..., T], *args: object) -> T:
    """Call `work(*args)`, which must be picklable, in a separate process; return its result or raise its error.

    Raises RuntimeError if it takes longer than `most_seconds`, and BrokenProcessPool if the process crashes.
    """
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        process = pool.submit(os.getpid).result()
        future = pool.submit(work, *args)
        try:
            return future.result(most_seconds)
        except NotDone:
            os.kill(process, KILL)
            raise RuntimeError(f"not done after {most_seconds:g} s") from None
