"""Born radii from sums over a tree of boxes."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from ..plan.passes import bound
from .passes import SolventPasses
from .tree_sums import TreeShape, TreeSums

if TYPE_CHECKING:
    from ..opencl.binding import Launch


class Tree(SolventPasses):
    """Near atoms one by one, far boxes by their moments; docs/theory/tree.md.

    Several devices may share its work, in which each atom's sums are its own.
    """

    @cached_property
    def tree(self) -> TreeSums:
        """Boxes over the tiles, and the way they are walked."""
        layout = self.layout
        shape = TreeShape(layout.width, not layout.blocks, layout.walks, layout.own)
        return TreeSums(self.tiles, self.model, shape, self.accuracy)

    def _sizes(self) -> dict[str, int]:
        return self.tree.sizes("sums")

    def _born(self) -> list[Launch]:
        spheres = self.spheres
        arguments = dict(
            n_parts=self.tree.n_parts, rho=spheres.rho, radii=spheres.intrinsic, **self.solvent_constants(),
            **self.named("sums", "inv_born"),
        )  # fmt: skip
        radii = self.of_atoms("radii_of_sums", arguments)
        return [*self.tree.launches(self, "sums"), radii]

    def narrow(self, first: int, end: int) -> None:
        """Compute from now on the atoms of the tiles from `first` to `end` alone; all others are sources."""
        n_tiles, own = len(self.tiles), self.layout.own
        *_, walk, radii = bound(self.born)
        items = walk.shape[0] // -(-n_tiles // own)
        walk.narrow(first // own * items, -(-end // own) * items)
        size = self.tiles.size
        radii.narrow(first * size, end * size)
        if self.energies:
            potential, pair_energies = bound(self.energy_of_pairs)
            items = size // (self.layout.width * self.layout.vectors)
            potential.narrow(first * items, end * items)
            pair_energies.narrow(first * size, end * size)
