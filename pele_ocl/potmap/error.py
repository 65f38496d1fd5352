"""Error of a map, measured at some of its points by direct sums over all atoms in float64."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..atoms import Floats
from .law import potential
from .problem import MapProblem

if TYPE_CHECKING:
    from ..opencl.device import Device

POINTS, SEED = 1000, 1
PART = 512  # atoms that a work-item sums up
AT_ONCE = 1 << 16  # evaluations on the host, so that what they need stays in a core's cache
FEW_EVALUATIONS = 3_000_000  # which the host has done sooner than a kernel is built
FEWER_BESIDE_A_GPU = 30  # times, where the host has sent the atoms sooner than it has done the sums


@dataclass(frozen=True)
class MapError:
    """Measured error of a map, relative to direct sums over all atoms in float64.

    norm : root mean square of the errors over the whole map's
    largest : the largest error seen, in the map's unit; a single point may be ten times as far off and more
    points : at which the map was compared, at random
    uncertainty : standard error of `norm`
    """

    norm: float
    largest: float
    points: int
    uncertainty: float

    def as_json(self) -> dict[str, float]:
        """Return the errors by name."""
        return {
            "norm": self.norm, "largest": self.largest, "points": self.points, "uncertainty": self.uncertainty
        }  # fmt: skip


class Sample:
    """Points of a map, drawn at random, and the potential there by direct sums over all atoms in float64.

    problem : of the map; device : that computes the sums, where it has float64 and they are many
    """

    def __init__(self, problem: MapProblem, device: Device) -> None:
        """Begins with the sums, which are waited for when the error is asked for."""
        self._indices = np.random.default_rng(SEED).integers(0, problem.grid.shape, (POINTS, 3))
        self._sums = exact_potentials(problem, self._indices, device)

    @cached_property
    def _exact(self) -> Floats:
        return self._sums()

    def error(self, values: NDArray[Any], squares: float) -> MapError:
        """Measure the error of a map's values (nz, ny, nx); docs/theory/mesh.md, section 5.

        squares : the sum of the squares of all values
        """
        i, j, k = self._indices.T
        errors2 = (values[k, j, i].astype(np.float64) - self._exact) ** 2
        mean = float(errors2.mean())
        size = float(np.sqrt(squares / values.size))
        norm = float(np.sqrt(mean)) / size if size else 0.0
        spread = float(errors2.std() / (2 * mean * np.sqrt(POINTS))) if mean else 0.0
        return MapError(norm, float(np.sqrt(errors2.max())), POINTS, norm * spread)


def exact_potentials(problem: MapProblem, indices: NDArray[np.int64], device: Device) -> Callable[[], Floats]:
    """Begin with direct sums over all atoms in float64 at points (n, 3) of the grid; what is given waits for them."""
    points = problem.corner + indices * problem.grid.spacing
    model = replace(problem.model, cutoff=None, smooth=False)
    whole = replace(problem.in_float64(), model=model, field=False)
    few = FEW_EVALUATIONS / (FEWER_BESIDE_A_GPU if device.kind == "GPU" else 1)
    if len(points) * problem.n_atoms > few and device.has_float64:
        return _on_device(device, whole, points)
    found = _on_host(whole, points)
    return lambda: found


def sum_of_squares(values: NDArray[Any]) -> float:
    """Sum the squares of all values (nz, ny, nx), whose planes are added up in float64."""
    return sum((float(np.vdot(plane, plane)) for plane in values), 0.0)


def _on_device(device: Device, problem: MapProblem, points: Floats) -> Callable[[], Floats]:
    """Potentials (n_points,) on a device, which begins with them now."""
    from ..opencl.queue import Queue

    queue, n_atoms, width = Queue(device, problem.precision), problem.n_atoms, device.vector_width(problem.precision)
    padded = np.pad(points, ((0, -len(points) % width), (0, 0)), mode="edge")
    n_points, n_parts = len(padded), max(1, -(-n_atoms // PART))
    sums = queue.empty(n_parts * n_points)
    kernel = queue.kernel("potmap/direct.cl", "potential_at", width, **problem.switches)
    queue.launch(
        kernel, (n_points // width, n_parts), (32 if width == 1 else 1, 1),
        dict(
            law=problem.law, n_points=n_points, n_atoms=n_atoms, per_part=PART, points=queue.hold(padded.T),
            atoms=queue.hold(problem.positions.T), charges=queue.hold(problem.charges), potentials=sums,
        ),
    )  # fmt: skip
    queue.submit()

    def potentials() -> Floats:
        found: Floats = queue.download(sums, n_parts * n_points).reshape(n_parts, n_points).sum(axis=0)
        return found[: len(points)]

    return potentials


def _on_host(problem: MapProblem, points: Floats) -> Floats:
    """Sum directly with NumPy."""
    potentials = np.zeros(len(points))
    step = max(1, AT_ONCE // len(points))
    for start in range(0, problem.n_atoms, step):
        part = slice(start, start + step)
        away = (p[:, None] - atoms[part] for p, atoms in zip(points.T, problem.positions.T, strict=True))
        potentials += potential(sum(each * each for each in away), problem.model) @ problem.charges[part]
    return potentials
