"""Distances of grid points to the nearest of many balls."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ..atoms import Floats, Ints
from ..grid import Grid

_NONE = np.int64(2**63 - 1)


def nearest_ball(grid: Grid, centres: Floats, radii: Floats, reach: float) -> tuple[NDArray[np.float32], Ints]:
    """Find the distance of each point to the nearest ball's surface, negative within, and which ball that is.

    centres : (n, 3) A, at least max(radii) + reach + a step within the grid; radii : (n,) A, one ball or more
    reach : A, how far from a ball its distance counts

    Returns (nz, ny, nx) A, `reach` where no ball is that near, and (nz, ny, nx), -1 there. Cost: n times the points of
    a ball.
    """
    spacing, most = grid.spacing, float(radii.max())
    index = np.rint(grid.index(centres)).astype(np.int64)
    beside = centres - grid.position(index)
    strides = np.array([1, grid.shape[0], grid.shape[0] * grid.shape[1]])
    home, ball = index @ strides, np.arange(len(centres), dtype=np.int64)
    # The least of distance and number as one integer: a float32 that is not negative sorts as its bits do.
    least = np.full(len(grid), _NONE)
    for step in _steps(grid, most + reach):
        distance = np.linalg.norm(step * spacing - beside, axis=1) - radii
        near = distance < reach
        bits = np.maximum(distance[near] + most, 0).astype(np.float32).view(np.int32).astype(np.int64)
        np.minimum.at(least, home[near] + int(step @ strides), bits << 32 | ball[near])
    found = least != _NONE
    distances = np.full(len(grid), reach, np.float32)
    distances[found] = (least[found] >> 32).astype(np.int32).view(np.float32) - np.float32(most)
    owners = np.where(found, least & 0xFFFFFFFF, -1).astype(np.int32)
    shape = grid.shape[::-1]
    return distances.reshape(shape), owners.reshape(shape)


def _steps(grid: Grid, radius: float) -> NDArray[np.int64]:
    """Steps (m, 3) from the point nearest to a place to all points within a radius of the place, A."""
    most = [math.ceil(radius / h + 0.5) for h in grid.spacing]
    steps = np.stack(np.meshgrid(*(np.arange(-n, n + 1) for n in most), indexing="ij"), -1).reshape(-1, 3)
    nearest = np.linalg.norm(np.maximum(np.abs(steps) - 0.5, 0) * grid.spacing, axis=1)
    within: NDArray[np.int64] = steps[nearest < radius]
    return within
