"""Corrections of float32 maps at the grid points within 1 A of an atom.

The kernels use coordinates rounded to float32. A coordinate of 100 A is rounded by up to 4e-6 A. At 0.01 A from an
atom, this changes the potential by 4e-4 of its value, which is the largest error of the map. At each of these points, a
kernel adds the potential at the exact distance minus that at the rounded distance. The difference of two float32
coordinates so close to each other has no rounding error.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..atoms import Floats, Ints
from .bins import sorted_by_cell
from .problem import MapProblem, packed4
from .slabs import MapSlab

if TYPE_CHECKING:
    from ..opencl.queue import Queue

REACH = 1.0  # A; in large maps, with larger rounding errors, REACH_SHARE of their size; at most REACH_STEPS spacings
REACH_SHARE = 0.01
REACH_STEPS = 2.0
EDGE = 8  # points per edge of a cube; an atom reaches five points along an axis, thus at most two cubes
GROUP = 64


def correct(queue: Queue, slab: MapSlab) -> None:
    """Correct the points of a slab near atoms, after all atoms have been added."""
    problem = slab.problem
    reach = _reach(problem)
    if problem.model.min_distance >= reach:
        return
    places, reaching = cubes(slab, reach)
    if not len(reaching):
        return
    kernel = queue.kernel("potmap/corrections.cl", "correct", EDGE=EDGE, **problem.switches)
    within = replace(slab, problem=replace(problem, model=replace(problem.model, cutoff=reach)))
    atoms, rests = (each.take(reaching, axis=0) for each in (problem.atoms4, problem.rests4))
    of_points = slab.rests(queue)
    queue.held += of_points.values()
    queue.launch(
        kernel, (EDGE**3, len(places) - 1), (GROUP, 1),
        dict(
            within.arguments(problem.n_atoms), **of_points, cubes=queue.upload_and_keep(places, np.int32),
            atoms=queue.upload_and_keep(atoms), rests=queue.upload_and_keep(rests),
        ),
    )  # fmt: skip


def _reach(problem: MapProblem) -> float:
    """Return the distance from an atom within which points are corrected, A."""
    spacing = problem.grid.spacing
    size = float(np.max(spacing * problem.grid.shape))
    return min(max(REACH, REACH_SHARE * size), REACH_STEPS * float(spacing.min()))


def cubes(slab: MapSlab, reach: float) -> tuple[Ints, NDArray[np.intp]]:
    """Find the cubes of a slab's points within reach of atoms.

    reach : distance from an atom, at most two grid spacings, A

    Returns (n + 1, 4): the first point of each cube along x, y, z, relative to the slab, and the position of its first
    atom in the list of atoms; the last row contains only the end of the list. Also returns the indices of the atoms,
    sorted by cube.
    """
    atoms, first, last = _reached(slab, reach)
    first //= EDGE
    last //= EDGE
    both = np.array(list(product((0, 1), repeat=3)))
    of, which = np.nonzero((first[:, None] + both <= last[:, None]).all(axis=2))
    shape = -(-np.array(slab.shape) // EDGE)
    order, starts = sorted_by_cell([*(first[of] + both[which]).T], shape)
    reached = np.flatnonzero(np.diff(starts))
    z, y, x = np.unravel_index(reached, shape[::-1])
    corners = (EDGE * np.append(each, 0) for each in (x, y, z))
    places = packed4(*corners, np.append(starts[reached], starts[-1]), dtype=np.int32)
    return places, atoms[of[order]]


def _reached(slab: MapSlab, reach: float) -> tuple[NDArray[np.intp], NDArray[np.int64], NDArray[np.int64]]:
    """Find the atoms within reach of points of a slab, and (n, 3) the first and last of these points along x, y, z."""
    problem = slab.problem
    shape = np.array([*problem.grid.shape[:2], slab.last - slab.first])
    places: Floats = (problem.positions - problem.corner) / problem.grid.spacing - (0, 0, slab.first)
    steps = reach / problem.grid.spacing
    first = np.clip(np.ceil(places - steps), 0, shape).astype(np.int64)
    last = np.clip(np.floor(places + steps), -1, shape - 1).astype(np.int64)
    atoms = np.flatnonzero((first <= last).all(axis=1))
    return atoms, first[atoms], last[atoms]
