"""Peak rates of a device for single kinds of operations, measured by cl/bench/ceilings.cl."""

from __future__ import annotations

from dataclasses import dataclass

from ..opencl.device import Device
from ..opencl.kernel import Arguments, Kernel
from ..opencl.queue import Queue

CHAINS = 8  # as in the kernel file
LEAST_SECONDS = 0.005  # shortest launch used to measure a rate
RUNS = 3
COPIED = 1 << 24  # numbers, larger than caches
GROUP = 64


@dataclass(frozen=True)
class Ceilings:
    """Peak rates of a device, per second.

    roots : reciprocal square roots; multiply_adds : multiply-adds; bytes : bytes read and written
    """

    device: str
    precision: str
    roots: float
    multiply_adds: float
    bytes: float


def measure_ceilings(device: Device, precision: str = "float32") -> Ceilings:
    """Measure the peak rates of a device, each as the best of several runs."""
    queue = Queue(device, precision)
    width = device.vector_width(precision)
    return Ceilings(
        str(device), precision, _rate(queue, "reciprocal_roots", width), _rate(queue, "multiply_adds", width),
        _bytes(queue, width),
    )  # fmt: skip


def _rate(queue: Queue, name: str, width: int) -> float:
    """Return the operations per second of a kernel, with enough steps for an accurate time."""
    kernel = queue.kernel("bench/ceilings.cl", name, width)
    items = GROUP * queue.device.compute_units * (8 if queue.device.kind == "CPU" else 64)
    kept, steps = queue.empty(items * width), 64
    while (seconds := _seconds(queue, kernel, items, dict(n_steps=steps, start=0.5, kept=kept))) < LEAST_SECONDS:
        steps *= 4
    best = min(
        seconds, *(_seconds(queue, kernel, items, dict(n_steps=steps, start=0.5, kept=kept)) for _ in range(RUNS - 1))
    )
    return items * width * CHAINS * steps / best


def _bytes(queue: Queue, width: int) -> float:
    kernel = queue.kernel("bench/ceilings.cl", "copied", width)
    source, target = queue.zeros(COPIED), queue.zeros(COPIED)
    arguments = {"from": source, "to": target}
    best = min(_seconds(queue, kernel, COPIED // width, arguments) for _ in range(RUNS + 1))
    return 2 * COPIED * queue.dtype.itemsize / best


def _seconds(queue: Queue, kernel: Kernel, items: int, arguments: Arguments) -> float:
    queue.events.clear()
    queue.launch(kernel, (items,), (GROUP,), arguments)
    return queue.kernel_seconds
