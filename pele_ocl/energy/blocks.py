"""Each pair once, blocks of two tiles in vectors; for CPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .passes import SumsOfPairs

if TYPE_CHECKING:
    from ..opencl.kernels import KeptLaunch


class Blocks(SumsOfPairs):
    """A few work-items share the rows of tiles, each with sums of its own for all atoms."""

    variant = "blocks"

    @property
    def n_parts(self) -> int:
        return self.layout.parts(len(self.tiles))

    def _sizes(self) -> dict[str, int]:
        return super()._sizes() | {"born_sums": self.n_parts * self.tiles.n_places}

    def _born(self) -> list[KeptLaunch]:
        tables = self.tables
        sums = self._over_blocks(
            "solvent/blocks.cl", "born_sums_blocks", np.int32(0), np.int32(len(self.tiles)), self._largest_rho,
            *self._of("spheres", "x", "y", "z"), tables.scaled, tables.rho, self.buffers["series"],
            tables.coefficient_columns, *self._of("origins", "extents"), tables.counts, self.buffers["born_sums"],
            **self._series,
        )  # fmt: skip
        return [sums, self._atom_terms(self.n_parts)]

    def _pairs(self) -> list[KeptLaunch]:
        return [
            self._over_blocks(
                "energy/pair_blocks.cl", "pair_blocks", *self._pair_tables(), self.buffers["pair_sums"],
                PER_ATOM=int(self.options.per_atom), **self._pair_macros,
            )
        ]  # fmt: skip

    def _chain(self) -> list[KeptLaunch]:
        weights = self._each_place(
            "energy/radii.cl", "chain_weights", np.int32(self.n_parts),
            *self._of("pair_sums", "born", "singles"), self.tables.counts,
            self.buffers["weights"], SHARES=1, **self.model.radius_definitions,
        )  # fmt: skip
        sums = self.buffers["pair_sums"]
        chain = self._over_blocks("energy/chain_blocks.cl", "chain_blocks", *self._chain_tables(), sums, **self._series)
        return [weights, chain]

    def _over_blocks(self, file: str, name: str, *args: Any, **defines: int) -> KeptLaunch:
        """A pass over pairs, of a work-item a part."""
        return self.run.keep(
            file, name, (self.n_parts, 1), (1, 1), np.int32(len(self.tiles)), np.int32(self.n_parts), *args,
            width=self.layout.width, TILE=self.layout.tile, **defines,
        )  # fmt: skip
