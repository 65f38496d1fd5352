"""Count the commands that the host sends to an OpenCL runtime."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pyopencl as cl

from pele_ocl.opencl.queue import Queue


@contextmanager
def counted_calls() -> Iterator[Counter[str]]:
    """Count launches, buffers created or cleared, and copies, by whether the host waits for them."""
    found, launch, copy, fill, make = (
        Counter[str](), cl.enqueue_nd_range_kernel, cl.enqueue_copy, cl.enqueue_fill_buffer, Queue._buffer
    )  # fmt: skip

    def copied(*given: Any, **more: Any) -> Any:
        between_buffers = isinstance(given[1], cl.Buffer) and isinstance(given[2], cl.Buffer)
        found["copies waited for" if more.get("is_blocking", not between_buffers) else "other copies"] += 1
        return copy(*given, **more)

    def counting(what: str, own: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **more: Any) -> Any:
            found[what] += 1
            return own(*given, **more)

        return call

    with (
        patch.object(cl, "enqueue_nd_range_kernel", counting("launches", launch)),
        patch.object(cl, "enqueue_copy", copied),
        patch.object(cl, "enqueue_fill_buffer", counting("buffers cleared", fill)),
        patch.object(Queue, "_buffer", counting("buffers made", make)),
    ):
        yield found
