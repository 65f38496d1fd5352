"""Ladder of Fourier transforms compared with libraries, on a cube of random complex numbers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec

import numpy as np

from pele_ocl.bench.bounds import MAP, bounded
from pele_ocl.bench.timing import mean_of_middle
from pele_ocl.ladder.fft import FFT_VARIANTS, fft, transformed
from pele_ocl.opencl.device import Device
from pele_ocl.opencl.queue import Queue
from timing_tables.fft.libraries import GPU_PEERS, WORKERS, Peer, Values, scipy
from timing_tables.installed import AbsentError

SEED = 1
FLOPS = 5  # of a transform of N numbers, over N log2 N; the usual count


@dataclass(frozen=True)
class Timing:
    """One row of the table.

    points : along an edge; seconds : of the kernels, or of the library call with data in place
    rate : floating-point operations per second by the conventional count, 5 N log2 N for N numbers
    over_scipy : time relative to scipy.fft, if that is installed; error : by norm, against NumPy in float64
    bounds, exact : as in bounds.Timing; none for peers
    """

    points: int
    precision: str
    variant: str
    device: str
    seconds: float
    rate: float
    over_scipy: float | None
    error: float
    bounds: dict[str, float] = field(default_factory=dict)
    exact: bool = True


def measure(
    points: int, precision: str, device: Device, variants: Sequence[str] = tuple(FFT_VARIANTS), runs: int = 5
) -> Iterator[Timing]:
    """Time scipy.fft, the variants, and the installed peers, each on points^3 numbers."""
    rng = np.random.default_rng(SEED)
    cube = rng.normal(size=(2, points, points, points))
    exact = np.fft.fftn(cube[0] + 1j * cube[1])
    values = (cube[0] + 1j * cube[1]).astype(np.complex64 if precision == "float32" else np.complex128)
    host: list[float] = []  # the seconds of scipy.fft, where it is installed

    def timing(name: str, where: str, seconds: float, found: Values, bounds: dict[str, float]) -> Timing:
        rate = FLOPS * values.size * np.log2(values.size) / seconds
        error = float(np.linalg.norm(found - exact) / np.linalg.norm(exact))
        over = seconds / host[0] if host else None
        return Timing(points, precision, name, where, seconds, rate, over, error, bounds)

    def peer_timing(name: str, peer: Callable[[Values], Peer], where: str) -> Timing:
        found, once = peer(values)
        seconds = mean_of_middle(lambda: _wall(once), runs)
        if peer is scipy:
            host.append(seconds)
        return timing(name, where, seconds, found, {})

    if find_spec("scipy") is not None:
        yield peer_timing("scipy.fft", scipy, f"{WORKERS} threads")
    for name in variants:
        own = fft(values, variant=name, precision=precision, device=device)
        seconds = mean_of_middle(partial(_kernels, device, precision, name, values), runs)
        yield timing(name, str(device), seconds, own, bounded(error=MAP[precision]))
    for name, peer in GPU_PEERS.items() if device.kind == "GPU" else ():
        try:
            yield peer_timing(name, peer, str(device))
        except AbsentError:
            continue


def _kernels(device: Device, precision: str, variant: str, values: Values) -> float:
    """Return the time of the kernels of one transform."""
    queue = Queue(device, precision)
    transformed(queue, variant, values)
    return queue.kernel_seconds


def _wall(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
