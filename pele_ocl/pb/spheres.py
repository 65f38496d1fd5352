"""Lists of the spheres near each block of nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..atoms import Floats, Ints
from ..grid import Grid
from .launching import BLOCK, Launching

SLACK = 1e-6  # A: rounding leaves out no sphere that touches a block


@dataclass(frozen=True, eq=False)
class SpheresOfBlocks:
    """Spheres of each block: members[starts[b]:starts[b + 1]], in their order. Spheres that touch none are left out."""

    starts: Ints
    members: Ints
    spheres: Floats

    @classmethod
    def of(cls, grid: Grid, centres: Floats, radii: Floats, reach: float = 0.0) -> SpheresOfBlocks:
        """Spheres that touch a block of nodes or an edge that leads from it.

        centres : (n, 3) A; radii : (n,) A; reach : A, how much farther a sphere counts
        """
        blocks = np.array([-(-n // BLOCK) for n in grid.shape])
        size = BLOCK * grid.spacing
        far = radii + reach + SLACK
        first = np.clip(np.floor((centres - far[:, None] - grid.origin) / size).astype(int), 0, None)
        end = np.minimum(blocks, np.floor((centres + far[:, None] - grid.origin) / size).astype(int) + 1)
        counts = np.maximum(end - first, 0)
        per_sphere = counts.prod(axis=1)
        member = np.repeat(np.arange(len(centres)), per_sphere)
        place = np.arange(len(member)) - np.repeat(np.cumsum(per_sphere) - per_sphere, per_sphere)
        nx, ny = counts[member, 0], counts[member, 1]
        index = first[member] + np.stack([place % nx, place // nx % ny, place // nx // ny], axis=1)
        low = grid.origin + index * size
        apart = np.maximum(0, np.maximum(low - centres[member], centres[member] - (low + size)))
        touches = (apart**2).sum(axis=1) <= far[member] ** 2
        member, index = member[touches], index[touches]
        number = (index[:, 2] * blocks[1] + index[:, 1]) * blocks[0] + index[:, 0]
        order = np.argsort(number, kind="stable")
        starts = np.searchsorted(number[order], np.arange(int(blocks.prod()) + 1))
        return cls(starts.astype(np.int32), member[order].astype(np.int32), np.column_stack([centres, radii]))

    def arguments(self, launching: Launching, name: str) -> dict[str, Any]:
        """Arguments of a kernel for these lists. name : "atom" or "probe" """
        run = launching.run
        return {
            f"{name}_starts": run.upload(self.starts, np.int32),
            f"{name}_members": run.upload(self.members, np.int32),
            f"{name}_spheres": launching.vectors(self.spheres),
        }
