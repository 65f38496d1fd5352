"""Frames per second of a trajectory in a file and in memory, and the memory used with a file.

python tests/benchmarks/frames.py [FRAMES [DEVICE]] writes 332 atoms of ubiquitin, moved at random, to an HDF5 file, and
computes energies of all frames: by evaluate_batch from an array, and by energy_over from the file to another file. The
time of a call includes opening and closing all files. The three are timed in turn, and medians are shown. Times do not
include compilation of kernels, and frames are in the page cache of the system.

The memory is the peak memory of the program before any frame is read, and after all frames have been processed once
from file to file; the array is created afterwards.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import h5py
import numpy as np
from numpy.typing import NDArray

from pele_ocl import Energy, energy_over
from pele_ocl.bench.systems import load

ATOMS, ROUNDS = 332, 5
BLOCK = 2000  # frames that differ from each other; after them the same come again
SUFFIXES = (".h5", ".csv")


def seconds(work: Callable[[], object]) -> float:
    """Return the time of a call in seconds."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def largest() -> str:
    """Return the peak memory of the process so far."""
    return f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MiB"


def write(path: Path, block: NDArray[np.float32], n_frames: int) -> None:
    """Write a file with this number of frames, repeating a block."""
    with h5py.File(path, "w") as stream:
        positions = stream.create_dataset("positions", (n_frames, *block.shape[1:]), block.dtype)
        for first in range(0, n_frames, len(block)):
            positions[first : first + len(block)] = block[: n_frames - first]


def compare(n_frames: int, device: str | None) -> None:
    """Print the peak memory of the process, and frames per second of all methods."""
    atoms = load("ubiquitin")[:ATOMS]
    plan = Energy(atoms, gradient=False, device=device)
    moves = np.random.default_rng(0).normal(0, 0.02, (min(n_frames, BLOCK), ATOMS, 3))
    block = (atoms.positions + moves).astype(np.float32)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "frames.h5"
        write(file, block, n_frames)

        def from_file(suffix: str) -> None:
            energy_over(plan, file, output=Path(folder) / f"out{time.perf_counter_ns()}{suffix}")

        plan.evaluate_batch(block)
        before = largest()
        for suffix in SUFFIXES:
            from_file(suffix)
        print(f"{plan.device}: {before} before the first frame, {largest()} after {n_frames:,} from file to file")
        frames = np.tile(block, (-(-n_frames // len(block)), 1, 1))[:n_frames]
        works: dict[str, Callable[[], object]] = {
            "memory": lambda: plan.evaluate_batch(frames),
            **{suffix: lambda suffix=suffix: from_file(suffix) for suffix in SUFFIXES},
        }
        times = [{name: seconds(work) for name, work in works.items()} for _ in range(ROUNDS)]
    rates = {name: n_frames / median(each[name] for each in times) for name in works}
    for name, rate in rates.items():
        print(f"{name:7s} {rate:10,.0f} frames/s = {rate / rates['memory']:.2f} of memory")


if __name__ == "__main__":
    compare(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000, sys.argv[2] if len(sys.argv) > 2 else None)
