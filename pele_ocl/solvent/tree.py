"""Born radii from sums over a tree of boxes: near atoms one by one, far boxes by their moments."""

from __future__ import annotations

from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from ..opencl.shared import LEAF, MOMENTS
from .accuracy import far_radii, tolerance
from .passes import SolventPasses

if TYPE_CHECKING:
    from ..opencl.launch import Argument, KeptLaunch

SMALL_BOX = 64  # slots; on GPUs the moments of larger boxes are a work-group's work
BOX_GROUP = 128  # work-items of it
TERMS = 4  # of the HCT series that moments are taken of
LOOKS = 64  # boxes that vectors look at together, cl/solvent/tree.cl
PARTNERS = 4000  # pairs of an atom that cost as much as the walk of its tile, about


class Tree(SolventPasses):
    """A tree of boxes over the tiles' slots: box k of level l has the slots 8 * 2^l * k and on.

    The highest level is that of the trunks, each of which is walked by itself.
    """

    @cached_property
    def counts(self) -> list[int]:
        """The number of boxes of each level, from the smallest boxes up."""
        counts = [self.tiles.n_slots // LEAF]
        while counts[-1] > self.layout.trunks:
            counts.append(-(-counts[-1] // 2))
        return counts

    @cached_property
    def firsts(self) -> list[int]:
        """The number of each level's first box, and of all boxes."""
        return [0, *accumulate(self.counts)]

    def _sizes(self) -> dict[str, int]:
        n_boxes, middles = self.firsts[-1], 2 if self.model.rgb_max is None else 3
        return {
            "sums": self.counts[-1] * self.tiles.n_slots, "middles": 4 * middles * n_boxes,
            "moments": 4 * MOMENTS * n_boxes,
        }  # fmt: skip

    def _born(self) -> list[KeptLaunch]:
        self.levels = self.run.upload(self.firsts, np.int32)
        spheres = self.spheres
        radii = self.of_atoms(
            "radii_of_sums", np.int32(self.counts[-1]), *self.solvent_constants(), self.buffers["sums"], spheres.rho,
            spheres.intrinsic, outputs=("inverses", "results"),
        )  # fmt: skip
        return [*self._boxes(), self._vectors() if self.layout.blocks else self._groups(), radii]

    @property
    def _macros(self) -> dict[str, int]:
        far = {"FAR_A": far_radii(self.accuracy), "TERMS_A": TERMS}
        return {**self.integral_macros, **far, "TILE": self.layout.tile}

    @property
    def _walk(self) -> list[Argument]:
        """TREE_ARGUMENTS of cl/solvent/tree.clh."""
        most = tolerance(self.accuracy, self.model)
        numbers = map(np.int32, (len(self.tiles), self.firsts[-1], len(self.counts) - 1))
        return [
            *numbers, self.levels, self.run.dtype.type(most), *self.reaches, self.buffers["spheres"], self.spheres.rho,
            *self.named("series", "origins", "extents"), self.spheres.counts,
            *self.named("middles", "moments", "sums"),
        ]  # fmt: skip

    def _boxes(self) -> list[KeptLaunch]:
        """The upward pass: small boxes a work-item each, large ones a group."""
        n_levels = len(self.counts)
        large = n_levels if self.layout.blocks else min(n_levels, (SMALL_BOX // LEAF).bit_length())
        return [
            self.run.keep(
                "solvent/boxes.cl", "box_moments", ((self.firsts[end] - self.firsts[level]) * lanes, 1), (lanes, 1),
                np.int32(len(self.tiles)), np.int32(level), np.int32(self.firsts[level]), np.int32(self.firsts[-1]),
                self.levels, self.spheres.reaches, *self.named("spheres", "series", "origins"), self.spheres.counts,
                *self.named("middles", "moments"), LANES=lanes, **self._macros,
            )
            for level, end, lanes in ((0, large, 1), (large, n_levels, BOX_GROUP))
            if end > level
        ]  # fmt: skip

    def _vectors(self) -> KeptLaunch:
        """Vectors of atoms walk by themselves, which suits CPUs."""
        width, tile = self.layout.width, self.layout.tile
        return self.run.keep(
            "solvent/tree.cl", "born_sums_tree", (len(self.tiles), self.counts[-1]), (1, 1), *self._walk,
            *self.named("x", "y", "z"), width=width, pairs=self._cost, VECTORS=tile // width,
            MOST_OPEN=LOOKS * (len(self.counts) + 2), **self._macros,
        )  # fmt: skip

    def _groups(self) -> KeptLaunch:
        """A work-group walks as one, which suits GPUs."""
        own, tile = self.layout.own, self.layout.tile
        return self.run.keep(
            "solvent/tree_groups.cl", "born_sums_tree_groups", (-(-len(self.tiles) // own) * tile, self.counts[-1]),
            (tile, 1), *self._walk, pairs=self._cost, OWN=own, MOST_OPEN=tile * (len(self.counts) + 2), **self._macros,
        )  # fmt: skip

    @property
    def _cost(self) -> float:
        """Pairs whose sums would take as long."""
        return len(self.atoms) * float(min(len(self.atoms), PARTNERS))
