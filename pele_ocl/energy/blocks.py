"""Each pair once, blocks of two tiles in vectors; for CPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .layout import BlocksLayout
from .masks import TileOrder
from .sums import SumsOfPairs

if TYPE_CHECKING:
    from ..opencl.binding import Launch
    from ..opencl.kernel import Arguments


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

    def _born(self) -> list[Launch]:
        spheres, buffers = self.spheres, self.buffers
        arguments = dict(
            first_frozen=self.first_frozen, first_tile=0, last_tile=len(self.tiles), atoms=buffers["spheres"],
            s=spheres.scaled, rho=spheres.rho, columns=spheres.coefficient_columns, counts=spheres.counts,
            sums=buffers["born_sums"], **self.reaches, **self.named("x", "y", "z", "series", "origins", "extents"),
        )  # fmt: skip
        sums = self._over_blocks("solvent/blocks.cl", "born_sums_blocks", arguments, **self.integral_macros)
        return [sums, self._atom_terms(self.n_parts)]

    def _pairs(self) -> list[Launch]:
        return [
            self._over_blocks(
                "energy/pair_blocks.cl", "pair_blocks",
                dict(first_frozen=self.first_frozen_pair, sums=self.buffers["pair_sums"], **self._pair_tables()),
                PER_ATOM=int(self.options.per_atom), **self._pair_macros,
            )
        ]  # fmt: skip

    def _chain(self) -> list[Launch]:
        weights = self.each_slot(
            "energy/radii.cl", "chain_weights",
            dict(n_parts=self.n_parts, counts=self.spheres.counts, sums=self.buffers["pair_sums"],
                 **self.named("born", "singles", "weights")),
            SHARES=1, **self.gb_macros,
        )  # fmt: skip
        chain = self._over_blocks(
            "energy/chain_blocks.cl", "chain_blocks",
            dict(first_frozen=self.first_frozen, sums=self.buffers["pair_sums"], **self._chain_tables()),
            **self.integral_macros,
        )  # fmt: skip
        return [weights, chain]

    def _over_blocks(self, file: str, name: str, arguments: Arguments, **defines: int) -> Launch:
        """Bind a pass over pairs, of a work-item a part. arguments : all but n_tiles and n_parts"""
        sizes = dict(n_tiles=len(self.tiles), n_parts=self.n_parts)
        return self.queue.bind(
            file, name, (self.n_parts, 1), (1, 1), {**sizes, **arguments}, width=self.layout.width,
            TILE=self.layout.tile, **defines,
        )  # fmt: skip
