"""Calculations at the same time on one device, in threads and in callbacks: bits equal single calls'.

Each calculation is a function of a device, a seed and a progress callback that gives arrays. One added to the table
goes through every test.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, partial

import numpy as np
import pytest
from conftest import random_atoms

from pele_ocl import Atoms, Grid, place_ions, potmap
from pele_ocl.common.variant import Progress
from pele_ocl.opencl import Device
from pele_ocl.potmap import plan as map_plan

Arrays = tuple[np.ndarray, ...]
Calculation = Callable[[Device, int, Progress | None], Arrays]

THREADS = 8
LIMIT = 60.0  # seconds after which a calculation hangs


@cache
def molecule(seed: int) -> tuple[Atoms, Grid]:
    """Make atoms, other ones for each seed, and a grid; each differs from all others."""
    atoms = random_atoms(300 + 40 * seed, seed)
    around = Grid.around(atoms, 8, 1.3)
    return atoms, Grid(around.origin + 0.011, around.spacing, around.shape)


def map_of(variant: str, device: Device, seed: int, progress: Progress | None = None) -> Arrays:
    """A potential map."""
    method = "cutoff" if variant == "cutoff" else "direct"
    found = potmap(*molecule(seed), method=method, variant=variant, device=device, progress=progress)
    return (found.map.values,)


def ions_of(device: Device, seed: int, progress: Progress | None = None) -> Arrays:
    """Ions around a molecule, enough for progress to be told several times."""
    atoms, grid = molecule(seed)
    found = place_ions(
        atoms, {"NA": 20, "CL": 20}, grid=grid, ion_distance=3.0, solute_distance=3.0, device=device, progress=progress
    )
    return found.positions, found.potentials


CALCULATIONS: dict[str, Calculation] = {
    "potmap": partial(map_of, "blocked"),
    "potmap cutoff": partial(map_of, "cutoff"),
    "potmap coalesced": partial(map_of, "coalesced"),
    "ions": ions_of,
}


@pytest.fixture(autouse=True)
def _many_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in many short launches, so that progress is told often."""
    monkeypatch.setattr(map_plan, "first_evals", lambda device: 1e5)
    monkeypatch.setattr(map_plan, "LAUNCH_SECONDS", 1e-3)


@cache
def alone(name: str, device: Device, seed: int) -> Arrays:
    """A calculation by itself."""
    return CALCULATIONS[name](device, seed, None)


def assert_same(found: Arrays, expected: Arrays) -> None:
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


@contextmanager
def second_thread() -> Iterator[Callable[[Callable[[], Arrays]], Arrays]]:
    """Run functions in another thread and give what they return. Raises TimeoutError for one that hangs."""
    with ThreadPoolExecutor(1) as pool:
        yield lambda function: pool.submit(function).result(LIMIT)


@pytest.mark.parametrize("inner", CALCULATIONS)
@pytest.mark.parametrize("outer", CALCULATIONS)
def test_callbacks_may_compute(device, outer, inner):
    """Another calculation on the same device, in the callback's own thread and in another one that it waits for."""
    seeds = iter([1, 2] * 100)
    computed = []

    with second_thread() as run_elsewhere:

        def compute(share: float) -> None:
            if len(computed) < 4:
                seed = next(seeds)
                function = partial(CALCULATIONS[inner], device, seed, None)
                computed.append((seed, run_elsewhere(function) if len(computed) % 2 else function()))

        found = CALCULATIONS[outer](device, 0, compute)

    assert len(computed) >= 2
    assert_same(found, alone(outer, device, 0))
    for seed, arrays in computed:
        assert_same(arrays, alone(inner, device, seed))


def test_eight_threads(device):
    """Every calculation in every order, each thread with molecules of its own choice."""
    tasks = [(name, seed) for seed in range(4) for name in CALCULATIONS] * 2
    order = np.random.default_rng(3).permutation(len(tasks))
    expected = {task: alone(task[0], device, task[1]) for task in tasks}
    with ThreadPoolExecutor(THREADS) as pool:
        jobs = [(tasks[k], pool.submit(CALCULATIONS[tasks[k][0]], device, tasks[k][1], None)) for k in order]
        for task, job in jobs:
            assert_same(job.result(LIMIT), expected[task])


def test_kernels_built_by_many_threads_at_once(device):
    """Threads that need the same kernels for the first time, all at once."""
    expected = alone("potmap", device, 1)
    device.kernels.clear()
    device.programs.clear()
    with ThreadPoolExecutor(THREADS) as pool:
        for found in pool.map(lambda _: CALCULATIONS["potmap"](device, 1, None), range(THREADS)):
            assert_same(found, expected)


def test_a_process_may_end_while_the_device_is_at_work(device):
    """With a simulation alive, whose launches are under way; exit waits for them."""
    code = (
        "import pele_ocl\n"
        "from pele_ocl.common.installation import shipped\n"
        "atoms = pele_ocl.read(shipped('data') / 'structures' / 'hexapeptide.pdb')\n"
        f"simulation = pele_ocl.Simulation(atoms, 16, timestep=1.0, device={device.index}).run(2)\n"
        "simulation.ensemble.minimize(max_iterations=1)\n"
        "for _ in range(20): simulation.ensemble.evaluate()\n"
    )
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
