"""Time of frames with one and with two worker processes.

python tests/benchmarks/workers.py [--independent] [--system ubiquitin] [--frames 2560] [--runs 3]

Energies of frames, without gradients, are computed by workers of a Dask scheduler. Each has one core with PoCL, or a
GPU, which `--system ruvab --frames 24000 --runs 1` keeps busy. The time is measured from the first task to the last
result, without the start of processes. The shortest of the runs is printed, because other programs or virtual machines
may disturb them, with the processor time of the scheduler and the command, which is not available to workers.

--independent measures the upper limit of the machine: the same frames in one independent process, and in two at the
same time, each on a separate core.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import h5py
import numpy as np
import psutil  # which Dask brings

import pele_ocl

STRUCTURES = Path(__file__).parents[2] / "data" / "structures"
N_DIFFERENT = 64  # frames; the others repeat them


def main() -> None:
    """Print frames per second of one process and of two, and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--independent", action="store_true")
    parser.add_argument("--system", default="ubiquitin")
    parser.add_argument("--frames", type=int, default=2560)
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    structure = next(STRUCTURES.glob(f"{options.system}.pdb*"))
    seconds_of = independent_seconds if options.independent else worker_seconds
    with tempfile.TemporaryDirectory() as folder:
        frames = Path(folder) / "frames.h5"
        write(frames, pele_ocl.read(structure).positions, options.frames)
        one, two = (options.frames / seconds_of(structure, frames, n, options.runs) for n in (1, 2))
    what = "independent process" if options.independent else "worker"
    print(f"1 {what} {one:.1f} frames/s, 2 {two:.1f} frames/s: {two / one:.2f} times")


def write(frames: Path, start: np.ndarray, n_frames: int) -> None:
    """Write a file of this many frames with noise."""
    moved = start + np.random.default_rng(0).normal(0, 0.02, (N_DIFFERENT, *start.shape))
    with h5py.File(frames, "w") as file:
        positions = file.create_dataset("positions", (n_frames, *start.shape), np.float32)
        for first in range(0, n_frames, N_DIFFERENT):
            positions[first : first + N_DIFFERENT] = moved[: n_frames - first]


def independent_seconds(structure: Path, frames: Path, n_processes: int, n_runs: int) -> float:
    """Return the time per set of frames if independent processes compute all frames each, on separate cores."""
    seconds = []
    for _ in range(n_runs):
        words = ("energy", str(structure), "-t", str(frames), "--json")
        begun = [pele_ocl_on(core, words) for core in range(n_processes)]
        ended = [json.loads(process.communicate()[0]) for process in begun]
        seconds.append(max(found["seconds"]["frames"] for found in ended))
    return min(seconds) / n_processes


def pele_ocl_on(core: int, words: tuple[str, ...]) -> subprocess.Popen[str]:
    """Start the command on one of the cores of this process, with one PoCL thread."""
    cores = sorted(os.sched_getaffinity(0))
    environment = {**os.environ, "POCL_CPU_MAX_CU_COUNT": "1", "POCL_MAX_PTHREAD_COUNT": "1"}
    return subprocess.Popen(
        ("taskset", "-c", str(cores[core]), sys.executable, "-m", "pele_ocl", *words),
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip


def worker_seconds(structure: Path, frames: Path, n_workers: int, n_runs: int) -> float:
    """Return the time of the fastest run on workers with compiled kernels, in seconds."""
    dask, file = (sys.executable, "-m", "dask"), frames.with_name(f"scheduler{n_workers}.json")
    options = ("--nthreads", "1", "--resources", "ocl=1", "--memory-limit", "0", "--no-dashboard")
    programs = [
        quiet(*dask, "scheduler", "--scheduler-file", str(file), "--port", "0", "--no-dashboard"),
        quiet(*dask, "worker", "--scheduler-file", str(file), "--nworkers", str(n_workers), *options),
    ]
    try:
        while not file.exists():
            time.sleep(0.1)
        run(structure, frames, file, ("--frames", ":64"))
        before = others_seconds(programs[0])
        seconds = [run(structure, frames, file, ()) for _ in range(n_runs)]
        spent = [(after - start) / n_runs for after, start in zip(others_seconds(programs[0]), before, strict=True)]
        print(f"{n_workers} workers; CPU seconds per run: scheduler {spent[0]:.2f}, command {spent[1]:.2f}")
    finally:
        for program in programs:
            program.terminate()
            program.wait()
    return min(seconds)


def others_seconds(scheduler: subprocess.Popen[bytes]) -> tuple[float, float]:
    """Return the processor time of the scheduler and of finished commands, including their start."""
    return sum(psutil.Process(scheduler.pid).cpu_times()[:2]), sum(os.times()[2:4])


def quiet(*words: str) -> subprocess.Popen[bytes]:
    """Start a program without output."""
    return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def run(structure: Path, frames: Path, scheduler: Path, more: tuple[str, ...]) -> float:
    """Return the time that the command reports for the frames, in seconds."""
    words = ("energy", str(structure), "-t", str(frames), "--scheduler", str(scheduler), "--json", *more)
    done = subprocess.run((sys.executable, "-m", "pele_ocl", *words), check=True, capture_output=True, text=True)
    seconds: float = json.loads(done.stdout)["seconds"]["frames"]
    return seconds


if __name__ == "__main__":
    main()
