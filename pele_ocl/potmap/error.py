"""Error of a map and of its field, measured at sample points by direct sums over all atoms in float64."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..atoms import Floats
from ..potential_model import PotentialModel
from .problem import MapProblem
from .slabs import Scratch

if TYPE_CHECKING:
    from ..opencl.device import Device


def potential(r2: Floats, model: PotentialModel) -> Floats:
    """Return the potential of a unit charge, e/A, at squared distances r2 [A^2], without the dielectric."""
    r = _clamped(r2, model)
    value = _screened(r, model)
    if model.cutoff is None:
        return value
    return np.where(r2 < model.cutoff**2, value * _switch(r, model), 0.0)


def slope(r2: Floats, model: PotentialModel) -> Floats:
    """Return -(d potential / dr) / r, e/A^3; times the vector from the charge, this is the field of a unit charge."""
    r = _clamped(r2, model)
    value = _screened(r, model)
    power = 2 if model.distance_dependent else 1
    pull = value * (power + model.kappa * r) / r**2
    if model.cutoff is not None:
        pull = pull * _switch(r, model)
        if model.smooth:  # minus the derivative of the switching function, divided by r
            pull = pull + value * 4 * np.maximum(1 - (r / model.cutoff) ** 2, 0) / model.cutoff**2
        pull = np.where(r2 < model.cutoff**2, pull, 0.0)
    found: Floats = np.where(r2 < model.min_distance**2, 0.0, pull)
    return found


def _clamped(r2: Floats, model: PotentialModel) -> Floats:
    """Return the distances, at least the minimum distance."""
    r: Floats = np.maximum(np.sqrt(r2), model.min_distance)
    return r


def _screened(r: Floats, model: PotentialModel) -> Floats:
    """Return exp(-kappa r) / r, or exp(-kappa r) / r^2 for a distance-dependent dielectric."""
    screening = np.exp(-model.kappa * r) if model.kappa else 1.0  # skips the exponentials, which take most of the time
    value: Floats = screening / (r * r if model.distance_dependent else r)
    return value


def _switch(r: Floats, model: PotentialModel) -> Floats | float:
    """Return the switching function of a smooth cutoff; 1 without one."""
    if not model.smooth or model.cutoff is None:
        return 1.0
    factor: Floats = np.maximum(1 - (r / model.cutoff) ** 2, 0) ** 2
    return factor


POINTS, SEED = 1000, 1
PART = 512  # atoms per work-item
AT_ONCE = 1 << 16  # evaluations per step on the host, to fit in a core's cache
FEW_EVALUATIONS = 3_000_000  # fewer are faster on the host than building a kernel
FEWER_BESIDE_A_GPU = 30  # divides this limit on GPUs, because sending the atoms is faster than the sums on the host


@dataclass(frozen=True)
class MapError:
    """Measured error of a map or of its field, relative to direct sums over all atoms in float64.

    norm : root mean square error divided by the root mean square of the exact values; infinite if these are 0 and
        errors are not
    largest : largest error found, in the map's unit; for the field, the length of the error vector, per A. Errors at
        other points may be ten times larger or more
    points : number of randomly chosen points compared; all points of a small map
    uncertainty : standard error of `norm`
    """

    norm: float
    largest: float
    points: int
    uncertainty: float

    def as_json(self) -> dict[str, float | None]:
        """Return the errors by name; None for an infinite one."""
        return {
            "norm": self.norm if math.isfinite(self.norm) else None, "largest": self.largest, "points": self.points,
            "uncertainty": self.uncertainty,
        }  # fmt: skip


class Sample:
    """Randomly chosen points of a map, with exact values from direct sums over all atoms in float64.

    problem : of the map; device : used for the sums if it supports float64 and the number of sums is large
    """

    def __init__(self, problem: MapProblem, device: Device) -> None:
        """Start computing the sums; `errors` waits for them."""
        self._indices, self._whole = sampled_points(problem.grid.shape, POINTS, SEED)
        self._sums = exact_values(problem, self._indices, device)

    @cached_property
    def _exact(self) -> Floats:
        return self._sums()

    def waited_for(self) -> Sample:
        """Wait for the sums, and return the sample."""
        exact = self._sums()
        self._sums = lambda: exact
        return self

    def errors(self, values: NDArray[Any], squares: tuple[float, ...]) -> tuple[MapError, ...]:
        """Measure the errors of the potential and, if computed, of the field; see docs/theory/mesh.md, section 5.

        values : (components, nz, ny, nx)
        squares : sums over all points of the squared potential and of the squared field
        """
        i, j, k = self._indices.T
        found, n_points = values[:, k, j, i].T, values[0].size
        return tuple(
            measured(found[:, part], self._exact[:, part], all_squares / n_points, self._whole)
            for part, all_squares in zip((slice(0, 1), slice(1, 4)), squares, strict=False)
        )


def sampled_points(shape: tuple[int, int, int], count: int, seed: Any) -> tuple[NDArray[np.int64], bool]:
    """Choose `count` random points of a grid, (n, 3); all points, and True, if the grid has no more."""
    if np.prod(shape, dtype=float) <= count:
        return np.stack(np.unravel_index(np.arange(np.prod(shape)), shape), axis=-1), True
    return np.random.default_rng(seed).integers(0, shape, (count, 3)), False


def measured(found: Floats, exact: Floats, mean_square: float, whole: bool = False) -> MapError:
    """Measure the error of values (n, components) relative to exact values at a sample of points.

    mean_square : of the approximate values at all points, of which the sample is a small part. To the extent that they
        correlate with the exact values, they are used to estimate the mean square of these at all points (a regression
        estimator), because a few points next to atoms contribute most of the squares. Uncorrelated approximate values,
        such as 0 everywhere, have no effect
    whole : True if the sample contains all points, so that there is no uncertainty
    """
    found = found.astype(np.float64)
    errors2, found2, exact2 = (np.einsum("nk,nk->n", each, each) for each in (found - exact, found, exact))
    n, of_errors, size2, share = len(exact2), float(errors2.mean()), float(exact2.mean()), 0.0
    if not whole and (spread := float(found2.var())):
        share = max(0.0, float(((found2 - found2.mean()) * (exact2 - size2)).mean()) / spread)
        estimate = size2 + share * (mean_square - float(found2.mean()))
        size2, share = (estimate, share) if estimate > 0 else (size2, 0.0)
    if not of_errors:
        return MapError(0.0, 0.0, n, 0.0)
    largest = float(np.sqrt(errors2.max()))
    if not size2:
        return MapError(float("inf"), largest, n, 0.0)
    norm = float(np.sqrt(of_errors / size2))
    apart = errors2 - norm**2 * (exact2 - share * found2)  # standard error of a ratio
    return MapError(norm, largest, n, 0.0 if whole else norm * float(apart.std()) / (2 * of_errors * n**0.5))


def exact_values(problem: MapProblem, indices: NDArray[np.int64], device: Device) -> Callable[[], Floats]:
    """Start direct sums over all atoms in float64 at points (n, 3) of the grid.

    Returns a function that waits for them and returns (n, 1) potentials, or (n, 4) with the field.
    """
    points = problem.corner + indices * problem.grid.spacing
    model = replace(problem.model, cutoff=None, smooth=False)
    whole = replace(problem.in_float64(), model=model, near=None)
    if _is_for_device(device, problem, len(points)):
        return _on_device(device, whole, points)
    found = _on_host(whole, points)
    return lambda: found


def sample_bytes(device: Device, problem: MapProblem) -> int:
    """Return the memory of a sample on a device, bytes."""
    n_points = min(POINTS, len(problem.grid))
    if not _is_for_device(device, problem, n_points):
        return 0
    n_sums = max(1, -(-problem.n_atoms // PART)) * problem.components * n_points
    return np.dtype(np.float64).itemsize * (3 * n_points + 4 * problem.n_atoms + n_sums)


def _is_for_device(device: Device, problem: MapProblem, n_points: int) -> bool:
    few = FEW_EVALUATIONS / (FEWER_BESIDE_A_GPU if device.kind == "GPU" else 1)
    return n_points * problem.n_atoms > few and device.has_float64


def sum_of_squares(values: NDArray[Any]) -> float:
    """Return the sum of the squares of all values (nz, ny, nx); partial sums of planes are added in float64."""
    return sum((float(np.vdot(plane, plane)) for plane in values), 0.0)


def _on_device(device: Device, problem: MapProblem, points: Floats) -> Callable[[], Floats]:
    """Start computing potentials and fields (n_points, components) on a device."""
    from ..opencl.queue import Queue

    queue, n_atoms, width = Queue(device, problem.precision), problem.n_atoms, device.vector_width(problem.precision)
    padded = np.pad(points, ((0, -len(points) % width), (0, 0)), mode="edge")
    n_points, n_parts = len(padded), max(1, -(-n_atoms // PART))
    scratch, n_sums = Scratch.kept(device, "sample"), n_parts * problem.components * n_points
    kernel = queue.kernel("potmap/direct.cl", "direct_values", width, **problem.switches)
    queue.launch(
        kernel, (n_points // width, n_parts), (32 if width == 1 else 1, 1),
        dict(
            law=problem.law, n_points=n_points, n_atoms=n_atoms, per_part=PART, points=queue.table(padded.T),
            atoms=scratch.posted(queue, "positions", problem.positions.T),
            charges=scratch.posted(queue, "charges", problem.charges), values=scratch(queue, "sums", n_sums),
        ),
    )  # fmt: skip
    queue.submit()

    def values() -> Floats:
        parts = queue.download(scratch(queue, "sums", n_sums), n_sums)
        found: Floats = parts.reshape(n_parts, problem.components, n_points).sum(axis=0)
        return found[:, : len(points)].T

    return values


def _on_host(problem: MapProblem, points: Floats) -> Floats:
    """Compute direct sums with NumPy, (n_points, components)."""
    values = np.zeros((len(points), problem.components))
    step = max(1, AT_ONCE // len(points))
    for start in range(0, problem.n_atoms, step):
        part = slice(start, start + step)
        away = [p[:, None] - atoms[part] for p, atoms in zip(points.T, problem.positions.T, strict=True)]
        r2, charges = sum(each * each for each in away), problem.charges[part]
        values[:, 0] += potential(r2, problem.model) @ charges
        if problem.field:
            pull = slope(r2, problem.model)
            for component, each in enumerate(away, 1):
                values[:, component] += (pull * each) @ charges
    return values
