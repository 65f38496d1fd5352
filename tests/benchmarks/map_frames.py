"""Frames per second of maps over a trajectory, and the host time per frame, compared with single maps.

python tests/benchmarks/map_frames.py [FRAMES [DEVICE [METHODS]]] moves ubiquitin at random, turns it, and makes the
mean map of 128^3 points, 0.5 A apart, over all superposed frames, with the given methods, by default all.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import h5py
import numpy as np

from pele_ocl import Atoms, Grid, potmap, potmap_over
from pele_ocl.bench.systems import load
from pele_ocl.potmap import MapOptions
from pele_ocl.potmap.frames import MapFrames

POINTS, SPACING = 128, 0.5
METHODS: dict[str, dict[str, object]] = {
    "mesh 1e-3": {"method": "mesh", "accuracy": 1e-3},
    "mesh 1e-4": {"method": "mesh", "accuracy": 1e-4},
    "cutoff 12 A": {"method": "cutoff"},
    "direct": {},
}


def moved(atoms: Atoms, n_frames: int) -> np.ndarray:
    """Return frames (m, n, 3) in A of the molecule with noise, rotated about its centre."""
    rng = np.random.default_rng(0)
    middle = atoms.positions.mean(axis=0)
    turns = np.linalg.qr(rng.normal(size=(n_frames, 3, 3)))[0]
    turns *= np.sign(np.linalg.det(turns))[:, None, None]
    away = atoms.positions - middle + rng.normal(0, 0.2, (n_frames, len(atoms), 3))
    return (away @ turns + middle).astype(np.float32)


def host_seconds(atoms: Atoms, grid: Grid, frames: np.ndarray, options: MapOptions) -> float:
    """Return the host time per frame in the launching thread."""
    maps = MapFrames(atoms, grid, options)
    maps.add(atoms)
    start = time.thread_time()
    for there in frames:
        maps.add(atoms.moved(there))
    return (time.thread_time() - start) / len(frames)


def main(n_frames: int, device: str | None, n_methods: int | None) -> None:
    """Print one line per method."""
    atoms = load("ubiquitin")
    first = atoms.positions.mean(axis=0) - SPACING * (POINTS - 1) / 2 + 0.123
    grid = Grid(first, SPACING, (POINTS,) * 3)
    frames = moved(atoms, n_frames)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "frames.h5"
        with h5py.File(path, "w") as file:
            file["positions"] = frames
        for name, options in list(METHODS.items())[:n_methods]:
            wanted = {**options, "device": device}
            potmap_over(atoms, path, grid, align=True, frames=":2", **wanted)
            start = time.perf_counter()
            found = potmap_over(atoms, path, grid, align=True, **wanted)
            rate = n_frames / (time.perf_counter() - start)
            kernels = 1e3 * found.result.seconds["kernel"] / n_frames
            few = frames[: max(1, n_frames // 4)]
            host = 1e3 * host_seconds(atoms, grid, few, MapOptions(**wanted))
            start = time.perf_counter()
            for there in few:
                potmap(atoms.moved(there), grid, **wanted)
            alone = len(few) / (time.perf_counter() - start)
            error = "" if found.result.error is None else f", error {found.result.error.norm:.1e}"
            print(
                f"{name:11s} {rate:7.1f} frames/s, kernels {kernels:6.1f} ms, host {host:4.1f} ms per frame; "
                f"one by one {alone:5.1f} frames/s{error}"
            )
        print(found.result.device)


if __name__ == "__main__":
    given = [*sys.argv[1:], *[""] * 3]
    main(int(given[0] or 200), given[1] or None, int(given[2]) if given[2] else None)
