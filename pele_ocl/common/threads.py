"""Threads that copy: one alone is slower than a bus, most of all into memory that is not yet there."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TypeVar

T = TypeVar("T")

MOST_COPIERS = 8
PART = 3 << 15  # numbers that a core's caches hold; whole rows of coordinates
LEAST = 10 * PART  # of fewer numbers it takes as long until threads begin and have ended
MANY = 20_000  # atoms whose sorting takes longer than a thread takes to begin


def in_parts(size: int, work: Callable[[slice], T]) -> list[T]:
    """Work on the parts of `size` numbers, by threads if there are several; results in their order."""
    if size < LEAST:
        return [work(slice(0, size))]
    parts = [slice(first, min(first + PART, size)) for first in range(0, size, PART)]
    return list(copiers().map(work, parts))


def by_rows(count: int, size: int, work: Callable[[slice], T]) -> list[T]:
    """Work on parts of so many rows of `size` numbers, as `in_parts` does."""
    if count * size < LEAST:
        return [work(slice(0, count))]
    step = max(1, PART // max(1, size))
    parts = [slice(first, min(first + step, count)) for first in range(0, count, step)]
    return list(copiers().map(work, parts))


def started(size: int, work: Callable[[], T]) -> Callable[[], T]:
    """Start work on `size` atoms in a thread, if there are many. The function returned waits for it, or does it."""
    return copiers().submit(work).result if size >= MANY else work


def in_new_thread(work: Callable[[], T]) -> Callable[[], T]:
    """Start work in a new thread, in which it may wait for the copiers. The function returned waits for it."""
    thread = ThreadPoolExecutor(1)
    result = thread.submit(work).result
    thread.shutdown(wait=False)
    return result


def copiers() -> ThreadPoolExecutor:
    """Get the threads of this process: a forked one lacks its parent's."""
    return _copiers(os.getpid())


@lru_cache(maxsize=1)
def _copiers(process: int) -> ThreadPoolExecutor:
    cores = len(os.sched_getaffinity(process)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return ThreadPoolExecutor(min(MOST_COPIERS, cores), "copier")
