"""Each pair once, blocks of two tiles in vectors; for CPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .layout import BlocksLayout
from .masks import TileOrder
from .sums import SumsOfPairs

if TYPE_CHECKING:
    from ..opencl.launch import Argument, KeptLaunch


class Blocks(SumsOfPairs[BlocksLayout]):
    """A few work-items share the rows of tiles, each with sums of its own for all atoms."""

    layout_type = BlocksLayout

    @property
    def n_parts(self) -> int:
        return self.layout.parts(len(self.tiles))

    @property
    def n_born_parts(self) -> int:
        return 0 if self.model.gb_model.vacuum else self.n_parts

    @classmethod
    def tile_order(cls, layout: BlocksLayout) -> TileOrder:
        return TileOrder(ring=True, own_vectors=False)

    def _sizes(self) -> dict[str, int]:
        return super()._sizes() | {"born_sums": self.n_parts * self.tiles.n_slots}

    def _born(self) -> list[KeptLaunch]:
        spheres = self.spheres
        sums = self._over_blocks(
            "solvent/blocks.cl", "born_sums_blocks", self.first_frozen, np.int32(0), np.int32(len(self.tiles)),
            *self.reaches, *self.named("spheres", "x", "y", "z"), spheres.scaled, spheres.rho, self.buffers["series"],
            spheres.coefficient_columns, *self.named("origins", "extents"), spheres.counts, self.buffers["born_sums"],
            **self.integral_macros,
        )  # fmt: skip
        return [sums, self._atom_terms(self.n_parts)]

    def _pairs(self) -> list[KeptLaunch]:
        return [
            self._over_blocks(
                "energy/pair_blocks.cl", "pair_blocks", self.first_frozen_pair, *self._pair_tables(),
                self.buffers["pair_sums"], PER_ATOM=int(self.options.per_atom), **self._pair_macros,
            )
        ]  # fmt: skip

    def _chain(self) -> list[KeptLaunch]:
        weights = self.each_slot(
            "energy/radii.cl", "chain_weights", np.int32(self.n_parts),
            *self.named("pair_sums", "born", "singles"), self.spheres.counts,
            self.buffers["weights"], SHARES=1, **self.gb_macros,
        )  # fmt: skip
        sums = self.buffers["pair_sums"]
        chain = self._over_blocks(
            "energy/chain_blocks.cl",
            "chain_blocks",
            self.first_frozen,
            *self._chain_tables(),
            sums,
            **self.integral_macros,
        )
        return [weights, chain]

    def _over_blocks(self, file: str, name: str, *args: Argument, **defines: int) -> KeptLaunch:
        """A pass over pairs, of a work-item a part."""
        return self.run.keep(
            file, name, (self.n_parts, 1), (1, 1), np.int32(len(self.tiles)), np.int32(self.n_parts), *args,
            width=self.layout.width, TILE=self.layout.tile, **defines,
        )  # fmt: skip
