"""Timing of the kernels for potential maps, on a random system or a structure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms
from ..grid import Grid
from ..ladder import POTMAP as VARIANTS
from ..opencl.device import Device
from ..potential_model import PotentialModel
from ..potmap import potmap
from ..potmap.computing import middle_part
from ..potmap.methods import MAP_METHODS
from ..potmap.plan import DEFAULT_ACCURACY
from ..reference.potmap import potmap as definition
from .bounds import MAP, bounded
from .timing import mean_of_middle

CUTOFF = 12.0  # A, for methods with a cutoff
SEED = 1
# Published rates on a GeForce 8800 (2007), 1e9 evaluations/s.
BOOKS = {"constant": 18.6, "coarsened": 33.4, "shared": 36.4, "coalesced": 39.5}
FIRST_SAMPLE_EVALS = 3e7
SAMPLE_SECONDS = 1.0
ENOUGH = 0.005  # fraction of SAMPLE_SECONDS that is enough to measure a rate
CHECKED_POINTS = 512

# Computes the map of a grid; returns the time of the kernels, s, and the values (nz, ny, nx), kcal/mol/e.
Once = Callable[[Grid], tuple[float, NDArray[np.floating]]]


@dataclass(frozen=True)
class Timing:
    """One row of the table.

    seconds : kernel time for the whole map
    sampled : whether the time was extrapolated from a few slices
    speedup, over_gather : relative to sequential and gather; None if these were not run
    error : relative to the float64 reference, by norm, at up to 512 points
    bounds, exact : as in bounds.Timing
    """

    shape: tuple[int, int, int]
    n_atoms: int
    precision: str
    variant: str
    device: str
    seconds: float
    sampled: bool
    evals_per_second: float
    speedup: float | None
    over_gather: float | None
    error: float
    bounds: dict[str, float] = field(default_factory=dict)
    exact: bool = True


def random_system(points: int, n_atoms: int, spacing: float = 0.5) -> tuple[Atoms, Grid]:
    """Return randomly placed charges, and a grid with `points`^3 points."""
    rng = np.random.default_rng(SEED)
    grid = Grid((0, 0, 0), spacing, (points, points, points))
    positions = rng.uniform(0, points * spacing, (n_atoms, 3))
    return Atoms(positions=positions, charges=rng.normal(0, 0.4, n_atoms)), grid


def measure(
    atoms: Atoms, grid: Grid, precision: str, devices: Sequence[Device], variants: Sequence[str], runs: int = 5
) -> Iterator[Timing]:
    """Time the variants on one map, which is divided between the devices, in the order of the table."""
    rates: dict[str, float] = {}
    for variant in (name for name in VARIANTS if name in variants):
        where = VARIANTS[variant].devices_for(list(devices))
        once = partial(_once, atoms, variant, precision, where)
        yield _timing(atoms, grid, precision, variant, " + ".join(map(str, where)), once, runs, rates)


def _once(
    atoms: Atoms, variant: str, precision: str, devices: Sequence[Device], grid: Grid
) -> tuple[float, NDArray[np.floating]]:
    method = VARIANTS[variant].method
    result = potmap(
        atoms,
        grid,
        method=method,
        cutoff=CUTOFF if MAP_METHODS[method].within_cutoff else None,
        variant=variant,
        precision=precision,
        device=devices,
    )
    return result.seconds["kernel"], result.map.values


def _timing(
    atoms: Atoms, grid: Grid, precision: str, name: str, device: str, once: Once, runs: int, rates: dict[str, float]
) -> Timing:
    """Return one row, and store its rate in `rates`."""
    model = PotentialModel(cutoff=CUTOFF) if MAP_METHODS[VARIANTS[name].method].within_cutoff else None
    rate, sampled, error = time_map(atoms, grid, once, runs, whole=VARIANTS[name].approximates, model=model)
    rates[name] = rate
    return Timing(
        shape=grid.shape,
        n_atoms=len(atoms),
        precision=precision,
        variant=name,
        device=device,
        seconds=len(atoms) * len(grid) / rate,
        sampled=sampled,
        evals_per_second=rate,
        speedup=_ratio(rates, name, "sequential"),
        over_gather=_ratio(rates, name, "gather"),
        error=error,
        bounds=_bounds(name, precision),
    )


def _bounds(name: str, precision: str) -> dict[str, float]:
    """Return the error bound of a variant: only rounding, unless it is approximate compared to its reference."""
    variant = VARIANTS[name]
    is_whole = not variant.approximates or MAP_METHODS[variant.method].within_cutoff
    return bounded(error=MAP[precision] if is_whole else DEFAULT_ACCURACY)


def _ratio(rates: dict[str, float], name: str, base: str) -> float | None:
    return rates[name] / rates[base] if base in rates else None


def time_map(
    atoms: Atoms, grid: Grid, once: Once, runs: int, whole: bool = False, model: PotentialModel | None = None
) -> tuple[float, bool, float]:
    """Return the evaluations per second, whether only slices of the grid were computed, and the error by norm.

    whole : True if the time cannot be extrapolated from some slices
    model : model of the reference; None for the potential of all atoms
    """
    part = grid if whole else _sample(grid, len(atoms), once)
    values = once(part)[1]
    seconds = mean_of_middle(lambda: once(part)[0], runs)
    return len(atoms) * len(part) / seconds, len(part) < len(grid), map_error(atoms, part, values, model)


def _sample(grid: Grid, n_atoms: int, once: Once) -> Grid:
    """Return the whole grid, or a central part that takes about SAMPLE_SECONDS. This also builds the kernels."""
    points, enough = FIRST_SAMPLE_EVALS / n_atoms, ENOUGH * SAMPLE_SECONDS
    while True:
        part = middle_part(grid, points)
        once(part)
        seconds = once(part)[0]
        if len(part) == len(grid) or seconds > enough:
            break
        # Only a few steps, because some kernels are compiled again for each.
        points = len(part) * max(2, min(256, 2 * enough / seconds))
    return middle_part(grid, len(part) * SAMPLE_SECONDS / seconds)


def map_error(atoms: Atoms, grid: Grid, values: NDArray[np.floating], model: PotentialModel | None = None) -> float:
    """Return the relative error of a map by norm, at CHECKED_POINTS random points of its grid."""
    rng = np.random.default_rng(SEED)
    indices = rng.integers(0, grid.shape, (CHECKED_POINTS, 3))
    exact = np.array([definition(atoms, Grid(grid.position(index), 1, (1, 1, 1)), model)[0, 0, 0] for index in indices])
    found = values[tuple(indices.T[::-1])]
    return float(np.linalg.norm(found - exact) / np.linalg.norm(exact))
