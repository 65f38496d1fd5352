"""Ceilings of a device: what it does at most in a second of one kind of work alone; cl/bench/ceilings.cl."""

from __future__ import annotations

from dataclasses import dataclass

from ..opencl.device import Device
from ..opencl.kernel import Kernel
from ..opencl.run import Run
from ..opencl.signature import Arguments

CHAINS = 8  # as in the kernel file
LEAST_SECONDS = 0.005  # of a launch, from which its rate is told
RUNS = 3
COPIED = 1 << 24  # numbers: more than caches hold
GROUP = 64


@dataclass(frozen=True)
class Ceilings:
    """Most that a device does in a second.

    roots : reciprocal square roots; multiply_adds : of two numbers to a third; bytes : read and written in all
    """

    device: str
    precision: str
    roots: float
    multiply_adds: float
    bytes: float


def measure_ceilings(device: Device, precision: str = "float32") -> Ceilings:
    """Measure what a device does at most, the best of some runs each."""
    run = Run(device, precision)
    width = device.vector_width(precision)
    return Ceilings(
        str(device), precision, _rate(run, "reciprocal_roots", width), _rate(run, "multiply_adds", width),
        _bytes(run, width),
    )  # fmt: skip


def _rate(run: Run, name: str, width: int) -> float:
    """Operations a second of a kernel; it takes as many steps as are needed for a time that can be told."""
    kernel = run.kernel("bench/ceilings.cl", name, width)
    items = GROUP * run.device.compute_units * (8 if run.device.kind == "CPU" else 64)
    kept, steps = run.empty(items * width), 64
    while (seconds := _seconds(run, kernel, items, dict(n_steps=steps, start=0.5, kept=kept))) < LEAST_SECONDS:
        steps *= 4
    best = min(
        seconds, *(_seconds(run, kernel, items, dict(n_steps=steps, start=0.5, kept=kept)) for _ in range(RUNS - 1))
    )
    return items * width * CHAINS * steps / best


def _bytes(run: Run, width: int) -> float:
    kernel = run.kernel("bench/ceilings.cl", "copied", width)
    source, target = run.zeros(COPIED), run.zeros(COPIED)
    arguments = {"from": source, "to": target}
    best = min(_seconds(run, kernel, COPIED // width, arguments) for _ in range(RUNS + 1))
    return 2 * COPIED * run.dtype.itemsize / best


def _seconds(run: Run, kernel: Kernel, items: int, arguments: Arguments) -> float:
    run.events.clear()
    run.launch(kernel, (items,), (GROUP,), arguments)
    return run.kernel_seconds
