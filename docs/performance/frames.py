"""Frames a second of a trajectory in a file beside the same conformations in memory, in turns; and the memory it takes.

python docs/performance/frames.py [FRAMES [DEVICE]] writes 332 atoms of ubiquitin, moved at random, to an HDF5 file, and
takes energies of all frames: by evaluate_batch from an array, and by energy_over from the file to another file.
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

from pele_ocl import Energy, energy_over
from pele_ocl.bench.systems import load

ATOMS, ROUNDS = 332, 3


def seconds(work: Callable[[], object]) -> float:
    """Seconds of one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def compare(n_frames: int, device: str | None) -> None:
    """Print frames a second of both ways, and the largest memory of the program so far."""
    atoms = load("ubiquitin")[:ATOMS]
    plan = Energy(atoms, gradient=False, device=device)
    moves = np.random.default_rng(0).normal(0, 0.02, (min(n_frames, 2000), ATOMS, 3))
    frames = (atoms.positions + moves).astype(np.float32)
    frames = np.tile(frames, (-(-n_frames // len(frames)), 1, 1))[:n_frames]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "frames.h5"
        with h5py.File(file, "w") as stream:
            stream["positions"] = frames
        works: dict[str, Callable[[], object]] = {
            "memory": lambda: plan.evaluate_batch(frames),
            ".h5": lambda: energy_over(plan, file, output=Path(folder) / f"out{time.perf_counter_ns()}.h5"),
            ".csv": lambda: energy_over(plan, file, output=Path(folder) / f"out{time.perf_counter_ns()}.csv"),
        }
        plan.evaluate_batch(frames[:100])
        times: dict[str, list[float]] = {name: [] for name in works}
        for _ in range(ROUNDS):
            for name, work in works.items():
                times[name].append(seconds(work))
    rates = {name: n_frames / median(taken) for name, taken in times.items()}
    for name, rate in rates.items():
        print(f"{name:7s} {rate:10,.0f} frames/s = {rate / rates['memory']:.2f} of memory")
    print(f"{plan.device}; at most {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MiB in all")


if __name__ == "__main__":
    compare(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000, sys.argv[2] if len(sys.argv) > 2 else None)
