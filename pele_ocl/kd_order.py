"""Atoms in the order of a k-d tree: halves of halves, each cut across its longest edge."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .atoms import Floats


def kd_order(positions: Floats, leaf: int) -> NDArray[np.intp]:
    """The atoms (n,) in the order of the leaves of a k-d tree (Bentley, Commun. ACM 18, 509 (1975)).

    The leaves hold `leaf` atoms each, but for the last one; box k of 2^l leaves in a row is a node of the tree.

    positions : (n, 3) A
    """
    n = len(positions)
    size = leaf << max(0, (-(-n // leaf) - 1).bit_length())
    # The places that are wanting come last in every box, and so in all.
    columns = np.full((3, size), np.inf)
    columns[:, :n] = positions.T
    order = np.arange(size)
    while size > leaf:
        boxes = columns.reshape(3, -1, size)
        axes = _longest_axes(boxes)
        along = np.take_along_axis(boxes, axes[None, :, None], axis=0)[0]
        halves = np.argpartition(along, size // 2 - 1, axis=1)
        order = np.take_along_axis(order.reshape(-1, size), halves, axis=1)
        columns = np.take_along_axis(boxes, halves[None], axis=2)
        size //= 2
    ordered: NDArray[np.intp] = order.ravel()[order.ravel() < n]
    return ordered


def _longest_axes(boxes: Floats) -> NDArray[np.intp]:
    """The axis of the longest edge of each box, whose atoms' coordinates are (3, n_boxes, size) A, infinity for none."""
    highest = np.where(np.isfinite(boxes), boxes, -np.inf).max(axis=2)
    axes: NDArray[np.intp] = np.argmax(highest - boxes.min(axis=2), axis=0)
    return axes
