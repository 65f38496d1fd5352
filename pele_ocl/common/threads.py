"""Copying by several threads, because a single one does not use the full memory bandwidth.

Work in one of these threads that is itself divided runs in this thread alone. If it waited for others, all of them
might wait.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TypeVar

T = TypeVar("T")

MOST_COPIERS = 8
PART = 3 << 15  # numbers that fit in the cache of a core; divisible by 3
LEAST = 10 * PART  # numbers from which threads are faster
MANY = 20_000  # atoms from which sorting in a thread is worthwhile

_own = threading.local()  # has the attribute `is_copier` in copiers


def in_parts(size: int, work: Callable[[slice], T]) -> list[T]:
    """Apply a function to parts of `size` numbers, by threads if there are several. Returns results in order."""
    if size < LEAST:
        return [work(slice(0, size))]
    parts = [slice(first, min(first + PART, size)) for first in range(0, size, PART)]
    return each(parts, work)


def by_rows(count: int, size: int, work: Callable[[slice], T]) -> list[T]:
    """Apply a function to parts of `count` rows of `size` numbers, as in `in_parts`."""
    if count * size < LEAST:
        return [work(slice(0, count))]
    step = max(1, PART // max(1, size))
    parts = [slice(first, min(first + step, count)) for first in range(0, count, step)]
    return each(parts, work)


def each(parts: Sequence[slice], work: Callable[[slice], T]) -> list[T]:
    """Apply a function to parts, by threads. Returns results in order."""
    return list(map(work, parts)) if _is_copier() else list(copiers().map(work, parts))


def started(size: int, work: Callable[[], T]) -> Callable[[], T]:
    """Start work on `size` atoms in a thread, if there are many. Returns a function that waits for it or does it."""
    return copiers().submit(work).result if size >= MANY and not _is_copier() else work


def in_new_thread(work: Callable[[], T]) -> Callable[[], T]:
    """Start work in a new thread, in which it may use the copiers. Returns a function that waits for it."""
    thread = ThreadPoolExecutor(1)
    result = thread.submit(work).result
    thread.shutdown(wait=False)
    return result


def copiers() -> ThreadPoolExecutor:
    """Return the thread pool of this process, since a forked process cannot use that of its parent."""
    return _copiers(os.getpid())


@lru_cache(maxsize=1)
def _copiers(process: int) -> ThreadPoolExecutor:
    cores = len(os.sched_getaffinity(process)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return ThreadPoolExecutor(min(MOST_COPIERS, cores), "copier", initializer=_begin_copier)


def _begin_copier() -> None:
    _own.is_copier = True


def _is_copier() -> bool:
    return getattr(_own, "is_copier", False)
