"""Spheres in cells, so that kernels find the ones near a place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..atoms import Floats
from .launching import Launching

if TYPE_CHECKING:
    from ..opencl.memory import Buffer

MOST_CELLS = 1 << 24


@dataclass(frozen=True, eq=False)
class Cells:
    """Spheres on a device by cells as long as the largest radius, or longer.

    count : of the spheres; arguments : of kernels that take CELLS (cl/pb/cells.clh)
    """

    count: int
    arguments: dict[str, Any]

    @classmethod
    def of(cls, launching: Launching, centres: Floats, radii: Floats) -> Cells:
        """Put spheres into cells. centres : (n, 3) A, n >= 1; radii : (n,) A"""
        queue, largest = launching.queue, float(radii.max())
        edge = largest + 1e-6
        while True:
            corner = centres.min(axis=0) - 2 * edge
            cell = np.floor((centres - corner) / edge).astype(np.int64)
            cells = cell.max(axis=0) + 3
            if float(np.prod(cells.astype(float))) <= MOST_CELLS:
                break
            edge *= 2  # spheres far apart
        number = (cell[:, 2] * cells[1] + cell[:, 1]) * cells[0] + cell[:, 0]
        order = np.argsort(number, kind="stable")
        starts = np.searchsorted(number[order], np.arange(int(cells.prod()) + 1))
        place = np.array([[*corner, largest], [edge, 0, 0, 0]])
        return cls(len(radii), {
            "cells": queue.int4(*cells.tolist(), len(radii)), "place": launching.vectors(place),
            "cell_starts": queue.upload(starts, np.int32), "cell_members": queue.upload(order, np.int32),
            "cell_spheres": launching.vectors(np.column_stack([centres, radii])),
        })  # fmt: skip

    @property
    def spheres(self) -> Buffer:
        """Centres and radii, (count) vectors of four, A."""
        buffer: Buffer = self.arguments["cell_spheres"]
        return buffer
