"""Threads that copy: work that is divided again within one of them does not wait for the others."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from pele_ocl.common import threads


@pytest.fixture(params=[1, 2])
def few(request, monkeypatch):
    """A pool of so few threads that all of them divide their work again; everything is large."""
    pool = ThreadPoolExecutor(request.param, initializer=threads._begin_copier)
    monkeypatch.setattr(threads, "_copiers", lambda process: pool)
    for name in ("LEAST", "MANY"):
        monkeypatch.setattr(threads, name, 1)
    monkeypatch.setattr(threads, "PART", 10)
    yield
    pool.shutdown(wait=False, cancel_futures=True)


def in_time(work: Callable[[], Any]) -> Any:
    """Return what `work` returns, if it ends."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(work()), daemon=True)
    thread.start()
    thread.join(60)
    assert found, "the threads wait for each other"
    return found[0]


@pytest.mark.usefixtures("few")
def test_work_that_is_divided_in_a_thread_is_done():
    def of_rows(rows: slice) -> list[int]:
        sums = threads.in_parts(35, lambda part: sum(range(35)[part]))
        return [rows.start + value + threads.started(5, lambda: 7)() for value in sums]

    expected = [[row + value + 7 for value in (45, 145, 245, 160)] for row in range(0, 40, 2)]
    assert in_time(lambda: threads.by_rows(40, 5, of_rows)) == expected


@pytest.mark.usefixtures("few")
def test_an_error_of_a_part_is_raised():
    def fail(part: slice) -> None:
        raise ZeroDivisionError

    def outcome() -> str:
        try:
            threads.in_parts(100, lambda part: threads.in_parts(100, fail))
        except ZeroDivisionError:
            return "raised"
        return "lost"

    assert in_time(outcome) == "raised"


@pytest.mark.usefixtures("few")
def test_a_new_thread_may_use_the_others():
    assert in_time(threads.in_new_thread(lambda: threads.in_parts(25, lambda part: part.start))) == [0, 10, 20]
