"""Maps with a given accuracy as a work of `tests/benchmarks/peers.py`: mesh method and comparable peers."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from pele_ocl.atoms import Atoms
from pele_ocl.bench.systems import ball_of_atoms
from pele_ocl.grid import Grid
from pele_ocl.opencl import Device
from pele_ocl.potmap import MapOptions, planned, potmap
from pele_ocl.potmap.error import Sample, sum_of_squares

from .comparison import MESH_ACCURACY, Contender, Measured, Work
from .peers import MESH_PEERS, Array, apart

SPACING = 0.5  # A


def mesh_work(
    points: int, n_atoms: int, precision: str, devices: Sequence[Device], runs: int, most_seconds: float
) -> Work:
    """Return the work of a map of a ball of atoms with `points` points per edge, with an error by norm of at most
    MESH_ACCURACY.

    most_seconds : time limit of a peer
    """
    atoms = ball_of_atoms(n_atoms)
    grid = Grid(np.full(3, -SPACING * (points - 1) / 2), SPACING, (points, points, points))

    def ours(device: Device) -> Measured:
        kernels = list[float]()

        def call() -> Array:
            result = potmap(atoms, grid, method="mesh", accuracy=MESH_ACCURACY, precision=precision, device=device)
            kernels.append(result.seconds["kernel"])
            return result.map.values

        seconds, values = _fastest(call, runs)
        return Measured("pele-ocl mesh", str(device), min(kernels), _error(atoms, grid, values, device), seconds)

    def of_peer(name: str) -> Measured:
        where, version, seconds, values = apart(most_seconds, _by_peer, name, atoms, grid, runs)
        return Measured(f"{name} {version}", where, seconds, _error(atoms, grid, values, devices[0]), seconds)

    system = f"{' x '.join(map(str, grid.shape))} points, {n_atoms:,} atoms"
    contenders = [Contender("pele-ocl", partial(ours, device), ours=True) for device in devices]
    contenders += [Contender(name, partial(of_peer, name)) for name in MESH_PEERS]
    return Work("mesh", system, n_atoms, n_atoms * len(grid), precision, contenders)


def _by_peer(name: str, atoms: Atoms, grid: Grid, runs: int) -> tuple[str, str, float, Array]:
    """Compute the map with a peer; return its device, version, time in seconds, and the map."""
    peer = MESH_PEERS[name](atoms, MESH_ACCURACY)
    found = [peer.once(grid) for _ in range(runs)]
    return peer.where, peer.version, min(seconds for seconds, _ in found), found[-1][1]


def _fastest(call: Callable[[], Array], runs: int) -> tuple[float, Array]:
    """Return the wall time of the fastest of some calls after a first one, and its result."""
    call()
    seconds = []
    for _ in range(runs):
        start = time.perf_counter()
        values = call()
        seconds.append(time.perf_counter() - start)
    return min(seconds), values


def _error(atoms: Atoms, grid: Grid, values: Array, device: Device) -> dict[str, float]:
    """Return the error by norm at 1,000 points, against direct sums in float64."""
    problem = planned(atoms, grid, MapOptions(method="mesh", accuracy=MESH_ACCURACY, device=device)).problem
    return {"potential": Sample(problem, device).errors(values[None], (sum_of_squares(values),))[0].norm}
