"""Time frames on one worker process and on two: python docs/performance/workers.py [SYSTEM [FRAMES]]

The energies of frames of a structure, 2,560 of ubiquitin (1,231 atoms) where none are named, with no gradient, by
workers that a Dask scheduler has; each has one core of PoCL, or a GPU of its own where there are two, which
`ruvab 4000` keeps busy. The clock runs from the first task to the last result, without the start of the processes; the
shortest of three runs counts, as other programs, or other guests of the machine, take time from any of them.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import h5py
import numpy as np

import pele_ocl

SYSTEM = sys.argv[1] if len(sys.argv) > 1 else "ubiquitin"
STRUCTURE = next((Path(__file__).parents[2] / "data" / "structures").glob(f"{SYSTEM}.pdb*"))
N_FRAMES, N_RUNS = int(sys.argv[2]) if len(sys.argv) > 2 else 2560, 3
N_DIFFERENT = 64  # frames; the others repeat them


def main() -> None:
    """Print the frames a second of one worker and two, and their ratio."""
    with tempfile.TemporaryDirectory() as folder:
        frames = Path(folder) / "frames.h5"
        start = pele_ocl.read(STRUCTURE).positions
        moved = start + np.random.default_rng(0).normal(0, 0.02, (N_DIFFERENT, *start.shape))
        with h5py.File(frames, "w") as file:
            positions = file.create_dataset("positions", (N_FRAMES, *start.shape), np.float32)
            for first in range(0, N_FRAMES, N_DIFFERENT):
                positions[first : first + N_DIFFERENT] = moved[: N_FRAMES - first]
        rates = [rate(frames, n_workers) for n_workers in (1, 2)]
    print(f"1 worker {rates[0]:.1f} frames/s, 2 workers {rates[1]:.1f} frames/s: {rates[1] / rates[0]:.2f} times")


def rate(frames: Path, n_workers: int) -> float:
    """Frames a second of the shortest run on workers that have built their kernels before."""
    dask, file = (sys.executable, "-m", "dask"), frames.with_name(f"scheduler{n_workers}.json")
    options = ("--nthreads", "1", "--resources", "ocl=1", "--memory-limit", "0", "--no-dashboard")
    programs = [
        quiet(*dask, "scheduler", "--scheduler-file", str(file), "--port", "0", "--no-dashboard"),
        quiet(*dask, "worker", "--scheduler-file", str(file), "--nworkers", str(n_workers), *options),
    ]
    try:
        while not file.exists():
            time.sleep(0.1)
        run(frames, file, ("--frames", ":64"))
        seconds = [run(frames, file, ()) for _ in range(N_RUNS)]
    finally:
        for program in programs:
            program.terminate()
            program.wait()
    return N_FRAMES / min(seconds)


def quiet(*words: str) -> subprocess.Popen[bytes]:
    """A program that prints nothing."""
    return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def run(frames: Path, scheduler: Path, more: tuple[str, ...]) -> float:
    """Seconds that the command reports for the frames."""
    words = ("energy", str(STRUCTURE), "-t", str(frames), "--scheduler", str(scheduler), "--json", *more)
    done = subprocess.run((sys.executable, "-m", "pele_ocl", *words), check=True, capture_output=True, text=True)
    seconds: float = json.loads(done.stdout)["seconds"]["frames"]
    return seconds


if __name__ == "__main__":
    main()
