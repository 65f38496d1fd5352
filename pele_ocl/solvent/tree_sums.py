"""Born sums over a tree of boxes, of any passes over tiles: near atoms singly, far boxes by moments."""

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

SMALL_BOX = 64  # slots; in groups the moments of larger boxes are a work-group's work
BOX_GROUP = 128  # work-items of it
TERMS = 5  # of the HCT series that atoms of leaves nearby take
LOOKS = 64  # boxes that vectors look at together, cl/solvent/tree.cl
OPEN_ROOM = 512  # room for boxes that wait is a multiple of it, so that molecules of most sizes share kernels
PARTNERS = 4000  # pairs of an atom that cost as much as the walk of its tile, about
LARGEST = 8_192  # slots of a trunk; larger boxes are hardly ever far, and each costs a pass over its atoms
TRUNKS = 64  # that a walk begins with, at most
WALKS = 4_096  # of all tiles, which fill any GPU; more of them would each do less
MOST_WALKS = 64  # of a tile


@dataclass(frozen=True)
class TreeShape:
    """Way in which the tree is walked.

    width : reals in a vector
    groups : whether a work-group walks as one, which suits GPUs; else vectors of atoms walk by themselves
    walks : of a tile, each through a part of the trunks, at most; own : tiles that a group walks with
    """

    width: int
    groups: bool
    walks: int = 4
    own: int = 1

    @classmethod
    def of(cls, width: int, n_atoms: int) -> TreeShape:
        """Choose the shape for kernels of so many reals in a vector."""
        return cls(width, True, walks_of(n_atoms)) if width == 1 else cls(width, False)


def walks_of(n_atoms: int) -> int:
    """Count the walks of a tile, so that all tiles' fill a GPU."""
    return min(MOST_WALKS, max(1, WALKS * 32 // n_atoms))


@dataclass(frozen=True, eq=False)
class TreeSums:
    """Tree of boxes over the slots of tiles: box k of level l has slots from 8 * 2^l * k on.

    The highest level is the trunks'. accuracy : worst relative error of a Born radius
    """

    tiles: Tiles
    model: SolventModel
    shape: TreeShape
    accuracy: float

    @cached_property
    def counts(self) -> list[int]:
        """Number of boxes of each level, from the smallest boxes up."""
        counts, walks = [self.tiles.n_slots // LEAF], self.shape.walks
        while counts[-1] > walks and (LEAF << (len(counts) - 1) < LARGEST or counts[-1] > TRUNKS * walks):
            counts.append(-(-counts[-1] // 2))
        return counts

    @cached_property
    def firsts(self) -> list[int]:
        """Numbers of each level's first box, and of all boxes."""
        return [0, *accumulate(self.counts)]

    @property
    def n_parts(self) -> int:
        """Parts in which the Born sums come, one of each walk."""
        return min(self.shape.walks, self.counts[-1])

    def _most_open(self, looks: int) -> int:
        """Count the boxes that may wait in a walk that looks at so many at a time."""
        return -(-self.counts[-1] // self.n_parts) + looks * (len(self.counts) + 2)

    def sizes(self, sums: str) -> dict[str, int]:
        """Reals in each buffer, for one conformation; sums : the name of the one of the Born sums."""
        n_boxes, middles = self.firsts[-1], 2 if self.model.born_cutoff is None else 3
        return {
            sums: self.n_parts * self.tiles.n_slots, "middles": 4 * middles * n_boxes, "moments": 4 * MOMENTS * n_boxes,
        }  # fmt: skip

    def launches(self, passes: TiledPasses, sums: str) -> list[Launch]:
        """List the launches that leave Born sums (n_conformations, n_parts, n_slots) in the passes' buffer `sums`."""
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
        """List the launches of the upward pass: small boxes a work-item each, large ones a group."""
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
        """Pairs whose sums would take as long."""
        n = int(self.tiles.counts.sum())
        return n * float(min(n, PARTNERS))
