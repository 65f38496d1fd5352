"""Born sums with a tree of boxes, for any passes over tiles: near atoms singly, far boxes by multipole moments."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from ..gb_models.solvent_model import SolventModel
from ..opencl.interface import LEAF, MOMENTS
from ..tiles import Tiles
from ..tiles.passes import TiledPasses
from .accuracy import far_radii, tolerance

if TYPE_CHECKING:
    from ..opencl.binding import Array, Launch
    from ..opencl.kernel import Arguments

SMALL_BOX = 64  # slots; the moments of larger boxes are computed by work-groups on GPUs
BOX_GROUP = 128  # work-items of these groups
TERMS = 5  # of the HCT series for atoms in near leaves
LOOKS = 64  # boxes tested together by vectors, cl/solvent/tree.cl
OPEN_ROOM = 512  # stack sizes are multiples of it, so that molecules of most sizes share kernels
PARTNERS = 4000  # pairs per atom that cost about as much as a traversal by its tile
LARGEST = 8_192  # slots of the largest boxes; larger ones are rarely far, and each costs a pass over its atoms
TRUNKS = 64  # largest number of boxes with which a traversal begins
WALKS = 4_096  # traversals of all tiles that are enough to fill any GPU
MOST_WALKS = 64  # per tile


@dataclass(frozen=True)
class TreeShape:
    """How the tree is traversed.

    width : reals in a vector
    groups : whether a work-group traverses the tree together, which suits GPUs; otherwise vectors of atoms do
    walks : largest number of traversals per tile, each of a part of the highest level; own : tiles per group
    """

    width: int
    groups: bool
    walks: int = 4
    own: int = 1

    @classmethod
    def of(cls, width: int, n_atoms: int) -> TreeShape:
        return cls(width, True, walks_of(n_atoms)) if width == 1 else cls(width, False)


def walks_of(n_atoms: int) -> int:
    """Number of traversals per tile with which all tiles fill a GPU."""
    return min(MOST_WALKS, max(1, WALKS * 32 // n_atoms))


@dataclass(frozen=True, eq=False)
class TreeSums:
    """Tree of boxes over the slots of tiles: box k of level l begins at slot 8 * 2^l * k.

    accuracy : largest relative error of a Born radius
    """

    tiles: Tiles
    model: SolventModel
    shape: TreeShape
    accuracy: float

    @cached_property
    def counts(self) -> list[int]:
        """Number of boxes per level, from the smallest boxes up."""
        counts, walks = [self.tiles.n_slots // LEAF], self.shape.walks
        while counts[-1] > walks and (LEAF << (len(counts) - 1) < LARGEST or counts[-1] > TRUNKS * walks):
            counts.append(-(-counts[-1] // 2))
        return counts

    @cached_property
    def firsts(self) -> list[int]:
        """Index of the first box of each level, and the number of all boxes."""
        return [0, *accumulate(self.counts)]

    @property
    def n_parts(self) -> int:
        """Number of parts of the Born sums, one per traversal."""
        return min(self.shape.walks, self.counts[-1])

    def _most_open(self, looks: int) -> int:
        """Stack size of a traversal that tests `looks` boxes at a time."""
        return -(-self.counts[-1] // self.n_parts) + looks * (len(self.counts) + 2)

    def sizes(self, sums: str) -> dict[str, int]:
        """Number of reals per conformation in each buffer. sums : name of the buffer of Born sums"""
        n_boxes, middles = self.firsts[-1], 2 if self.model.born_cutoff is None else 3
        return {
            sums: self.n_parts * self.tiles.n_slots, "middles": 4 * middles * n_boxes, "moments": 4 * MOMENTS * n_boxes,
        }  # fmt: skip

    def launches(self, passes: TiledPasses, sums: str) -> list[Launch]:
        """Bind the launches that write Born sums (n_conformations, n_parts, n_slots) to the buffer `sums`."""
        levels = passes.queue.upload(self.firsts, np.int32)
        most = tolerance(self.accuracy, self.model)
        walk = dict(  # TREE_PARAMETERS of cl/solvent/tree.clh
            n_tiles=len(self.tiles), n_boxes=self.firsts[-1], trunk_level=len(self.counts) - 1, levels=levels,
            tolerance=most, atoms=passes.buffers["spheres"], rho=passes.spheres.rho, counts=passes.spheres.counts,
            sums=passes.buffers[sums], **passes.reaches,
            **passes.named("series", "origins", "extents", "middles", "moments"),
        )  # fmt: skip
        walked = self._groups(passes, walk) if self.shape.groups else self._vectors(passes, walk)
        return [*self._boxes(passes, levels), walked]

    def _macros(self, passes: TiledPasses) -> dict[str, int]:
        far = {"FAR_A": far_radii(self.accuracy), "TERMS_A": TERMS}
        return {**passes.integral_macros, **far, "TILE": self.tiles.size}

    def _boxes(self, passes: TiledPasses, levels: Array) -> list[Launch]:
        """Bind the launches of the upward pass: one work-item per small box, one group per large box."""
        n_levels, spheres, width = len(self.counts), passes.spheres, min(self.shape.width, LEAF)
        large = min(n_levels, (SMALL_BOX // LEAF).bit_length()) if self.shape.groups else n_levels
        x, y, z = passes.named("x", "y", "z").values()
        arguments = dict(
            n_tiles=len(self.tiles), n_boxes=self.firsts[-1], levels=levels, reaches=spheres.reaches, x_of=x, y_of=y,
            z_of=z, s_of=spheres.scaled, columns=spheres.coefficient_columns,
            **passes.named("origins", "middles", "moments"),
        )  # fmt: skip
        return [
            passes.queue.bind(
                "solvent/boxes.cl", "box_moments", ((self.firsts[end] - self.firsts[level]) * lanes, 1), (lanes, 1),
                dict(first_level=level, first_box=self.firsts[level], **arguments), width=width, LANES=lanes,
                **self._macros(passes),
            )
            for level, end, lanes in ((0, large, 1), (large, n_levels, BOX_GROUP))
            if end > level
        ]  # fmt: skip

    def _vectors(self, passes: TiledPasses, walk: Arguments) -> Launch:
        width = self.shape.width
        return passes.queue.bind(
            "solvent/tree.cl", "born_sums_tree", (len(self.tiles), self.n_parts), (1, 1),
            {**walk, **passes.named("x", "y", "z")}, width=width, cost=self._cost, VECTORS=self.tiles.size // width,
            MOST_OPEN=-(-self._most_open(LOOKS) // OPEN_ROOM) * OPEN_ROOM, **self._macros(passes),
        )  # fmt: skip

    def _groups(self, passes: TiledPasses, walk: Arguments) -> Launch:
        own, tile = self.shape.own, self.tiles.size
        return passes.queue.bind(
            "solvent/tree_groups.cl", "born_sums_tree_groups", (-(-len(self.tiles) // own) * tile, self.n_parts),
            (tile, 1), walk, cost=self._cost, OWN=own, MOST_OPEN=self._most_open(tile),
            **self._macros(passes),
        )  # fmt: skip

    @property
    def _cost(self) -> float:
        """Number of pairs with about the same cost as the traversals."""
        n = int(self.tiles.counts.sum())
        return n * float(min(n, PARTNERS))
