"""Passes in which each atom sums its own row of pairs; for GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .layout import RowsLayout
from .passes import SumsOfPairs
from .tables import TileOrder

if TYPE_CHECKING:
    from ..opencl.binding import Launch
    from ..opencl.kernel import Arguments

LOCAL_REALS = 16  # largest local memory per atom


class Rows(SumsOfPairs[RowsLayout]):
    """A work-group computes one tile; its parts divide the other tiles among them; cl/energy/rows.clh."""

    layout_type = RowsLayout
    n_parts = 1
    leaves_out = False

    @classmethod
    def tile_order(cls, layout: RowsLayout) -> TileOrder:
        return TileOrder(ring=False, own_vectors=True)

    def _born(self) -> list[Launch]:
        return [
            self._over_rows(
                "energy/born_rows.cl", "born_rows",
                dict(
                    counts=self.spheres.counts, **self.reaches, **self.solvent_constants(), **self._atom_tables(),
                    **self.named("spheres", "x", "y", "z", "series", "origins", "extents"),
                ),
                ROW=1, **self.gb_macros, **self.integral_macros,
            )
        ]  # fmt: skip

    def _pairs(self) -> list[Launch]:
        arguments = dict(sums=self.buffers["pair_sums"], **self._pair_tables(), **self.named("singles", "weights"))
        return [self._over_rows("energy/pair_rows.cl", "pair_rows", arguments, **self._pair_macros)]

    def _chain(self) -> list[Launch]:
        finishing, macros = (self._to_finish(), self._finish_macros) if self._finishes else ({}, {})
        arguments = dict(sums=self.buffers["pair_sums"], **self._chain_tables(), **finishing)
        return [
            self._over_rows(
                "energy/chain_rows.cl", "chain_rows", arguments, FINISHES=int(self._finishes), **self.integral_macros,
                **macros,
            )
        ]  # fmt: skip

    @property
    def _finishes(self) -> bool:
        """Return whether the chain rule also writes the results, which takes one work-item per slot."""
        return self.options.chain and self.layout.width == 1

    def _finish(self) -> list[Launch]:
        return [] if self._finishes else super()._finish()

    def _over_rows(self, file: str, name: str, arguments: Arguments, **defines: int) -> Launch:
        """Bind a pass over rows, in groups as large as the device and the kernel allow. arguments : all but n_tiles"""
        layout, device = self.layout, self.queue.device
        items, parts = layout.tile // layout.width, layout.parts_of_rows
        local_bytes = layout.tile * LOCAL_REALS * self.queue.dtype.itemsize
        while parts > 1 and (
            parts * local_bytes > device.handle.local_mem_size or parts * items > device.largest_group
        ):
            parts //= 2
        kernel, parts = self.queue.built_to_fit(
            parts,
            lambda parts: self.queue.kernel(file, name, layout.width, TILE=layout.tile, PARTS=parts, **defines),
            items,
        )
        shape = len(self.tiles) * items * parts, 1
        return self.queue.bind_kernel(kernel, shape, (items * parts, 1), {"n_tiles": len(self.tiles), **arguments})
