"""Born radii from sums over a tree of boxes: near atoms one by one, far boxes by their moments."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..atoms import Ints
from .passes import SolventPasses

if TYPE_CHECKING:
    from ..opencl.launch import KeptLaunch

LEAF, MOMENTS = 8, 8  # of cl/solvent/tree.clh
MOST_TRUNKS = 64
SMALL_BOX = 64  # slots; the moments of larger boxes are a work-group's work on a GPU
TOLERANCE = 1e-7
GROUPS = False
OWN = 2


class Tree(SolventPasses):
    """A tree of boxes over the tiles' slots: box k of level l has the slots 8 * 2^l * k and on."""

    @cached_property
    def levels(self) -> Ints:
        """Number of each level's first box, and of all boxes, (n_levels + 1,)."""
        counts = [self.tiles.n_slots // LEAF]
        while counts[-1] > self.most_trunks:
            counts.append(-(-counts[-1] // 2))
        return np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)

    @property
    def most_trunks(self) -> int:
        return 1 if self.layout.blocks else MOST_TRUNKS

    @property
    def n_boxes(self) -> int:
        return int(self.levels[-1])

    @property
    def n_trunks(self) -> int:
        return int(self.levels[-1] - self.levels[-2])

    def _sizes(self) -> dict[str, int]:
        return {
            "sums": self.n_trunks * self.tiles.n_slots, "middles": 8 * self.n_boxes, "moments": 4 * MOMENTS * self.n_boxes,
            "tolerances": len(self.tiles),
        }

    def _born(self) -> list[KeptLaunch]:
        spheres, layout = self.spheres, self.layout
        n_tiles = np.int32(len(self.tiles))
        levels = self.run.upload(self.levels, np.int32)
        n_levels = len(self.levels) - 1
        large = next((l for l in range(n_levels) if LEAF << l > SMALL_BOX), n_levels) if not layout.blocks else n_levels
        parts = [(0, large, 1), (large, n_levels, 128)]
        boxes = [
            self.run.keep(
                "solvent/boxes.cl", "box_moments", ((int(self.levels[last] - self.levels[first])) * lanes, 1), (lanes, 1),
                n_tiles, np.int32(first), np.int32(self.levels[first]), np.int32(self.n_boxes), levels, self.largest_rho,
                *self.named("spheres", "series", "origins"), spheres.counts, *self.named("middles", "moments"),
                TILE=layout.tile, LANES=lanes, FAR_A=5,
            )
            for first, last, lanes in parts if last > first
        ]
        series = {**self.series, "FAR_A": 5, "TERMS_A": 4}
        self.buffers["tolerances"] = self.run.upload(np.full(self.batch * len(self.tiles), TOLERANCE))
        walk = n_tiles, np.int32(self.n_boxes), np.int32(n_levels - 1), levels, self.largest_rho, self.buffers["tolerances"]
        if layout.blocks and not GROUPS:
            width = layout.width
            sums = self.run.keep(
                "solvent/tree.cl", "born_sums_tree", (len(self.tiles), self.n_trunks), (1, 1), *walk,
                *self.named("spheres", "x", "y", "z"), spheres.rho, *self.named("series", "origins", "extents"),
                spheres.counts, *self.named("middles", "moments", "sums"), width=width, TILE=layout.tile,
                VECTORS=layout.tile // width, FAR_COST=18, **series,
            )
        else:
            sums = self.run.keep(
                "solvent/tree_groups.cl", "born_sums_tree_groups", (-(-len(self.tiles) // OWN) * layout.tile, self.n_trunks), (layout.tile, 1), *walk,
                self.buffers["spheres"], spheres.rho, *self.named("series", "origins", "extents"), spheres.counts,
                *self.named("middles", "moments", "sums"), TILE=layout.tile, OWN=OWN, FAR_COST=18, **series,
            )
        radii = self.of_atoms(
            "radii_of_sums", np.int32(self.n_trunks), *self.solvent_constants(), self.buffers["sums"], spheres.rho,
            self.intrinsic, outputs=("inverses", "results"),
        )
        return [*boxes, sums, radii]
