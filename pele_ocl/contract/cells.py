"""Unit cells as three vectors."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

Image = Literal["auto", "none"]  # whether frames with a cell are imaged
IMAGES: tuple[Image, ...] = get_args(Image)

LEAST_WIDTH = 5.0  # A, smallest width of a usable cell; excludes the 1 x 1 x 1 cell of NMR models


def cells_of(lengths: ArrayLike, angles: ArrayLike) -> Floats:
    """Return cells (m, 3, 3) A, with vectors as rows, from lengths (m, 3) A and angles (m, 3) degrees.

    The first vector is parallel to x, the second lies in the xy plane. Values are NaN without a cell.
    """
    a, b, c = np.asarray(lengths, np.float64).reshape(-1, 3).T
    cosines = np.cos(np.radians(np.asarray(angles, np.float64).reshape(-1, 3)))
    alpha, beta, gamma = np.where(np.abs(cosines) < 1e-12, 0.0, cosines).T
    cells = np.zeros((len(a), 3, 3))
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        sine = np.sqrt(1 - gamma**2)
        third = (alpha - beta * gamma) / sine
        cells[:, 0, 0] = a
        cells[:, 1, 0], cells[:, 1, 1] = b * gamma, b * sine
        cells[:, 2, 0], cells[:, 2, 1] = c * beta, c * third
        cells[:, 2, 2] = c * np.sqrt(1 - beta**2 - third**2)
    return usable_cells(cells)


def dimensions_of(cells: Floats) -> tuple[Floats, Floats]:
    """Return lengths (m, 3) A and angles (m, 3) degrees of cells (m, 3, 3)."""
    lengths = np.linalg.norm(cells, axis=2)
    pairs = ((1, 2), (0, 2), (0, 1))
    cosines = [np.einsum("mi,mi->m", cells[:, i], cells[:, j]) / (lengths[:, i] * lengths[:, j]) for i, j in pairs]
    return lengths, np.degrees(np.arccos(np.clip(np.stack(cosines, axis=1), -1, 1)))


def usable_cells(cells: ArrayLike) -> Floats:
    """Return the cells (m, 3, 3) A, with NaN for cells that are too small for a molecule or have no volume."""
    found = np.array(cells, np.float64).reshape(-1, 3, 3)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        widths = widths_of(found)
        found[~(np.isfinite(widths).all(axis=1) & (widths >= LEAST_WIDTH).all(axis=1))] = np.nan
    return found


def widths_of(cells: Floats) -> Floats:
    """Return distances (m, 3) A between opposite faces of cells (m, 3, 3)."""
    normals = np.cross(cells[:, [1, 2, 0]], cells[:, [2, 0, 1]])
    volumes = np.abs(np.einsum("mi,mi->m", cells[:, 0], normals[:, 0]))
    widths: Floats = volumes[:, np.newaxis] / np.linalg.norm(normals, axis=2)
    return widths


def reduced(cell: Floats) -> Floats:
    """Return integers (3, 3) for a lattice reduction: `numbers @ cell` has shorter vectors.

    Rounding to the nearest image is only correct for short vectors, not for those of a very flat cell.
    """
    numbers, vectors = np.eye(3), cell.copy()
    for _ in range(100):
        order = np.argsort(np.linalg.norm(vectors, axis=1), kind="stable")
        vectors, numbers = vectors[order], numbers[order]
        before = numbers.copy()
        for i, j in ((1, 0), (2, 0), (2, 1)):
            times = np.rint(vectors[i] @ vectors[j] / (vectors[j] @ vectors[j]))
            if times and np.linalg.norm(vectors[i] - times * vectors[j]) < np.linalg.norm(vectors[i]) * (1 - 1e-9):
                vectors[i] -= times * vectors[j]
                numbers[i] -= times * numbers[j]
        if (numbers == before).all():
            break
    return numbers
