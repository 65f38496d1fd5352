"""Each pair once, by tile pairs in groups; for GPUs."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import numpy as np

from ..opencl.shared import RING_STEPS, Follows
from .layout import MOST_LAYERS, Slab, SquaresLayout
from .masks import TileOrder
from .passes import EnergyPasses

if TYPE_CHECKING:
    from ..opencl.launch import Argument, KeptLaunch


class Squares(EnergyPasses[SquaresLayout]):
    """A group owns a row of tiles and meets half a ring of rows, in layers for what each tile gets.

    The kernels' side of it is cl/energy/squares.clh.
    """

    layout_type = SquaresLayout

    @classmethod
    def tile_order(cls, layout: SquaresLayout) -> TileOrder:
        return TileOrder(ring=True, own_vectors=True, row_tiles=layout.row)

    @property
    def fused(self) -> bool:
        """Whether the last group of a launch goes on with what all of them left."""
        return self.layout.fused and self.run.device.has_device_fence

    @property
    def n_rows(self) -> int:
        return self.layout.rows(len(self.tiles))

    @property
    def slabs(self) -> list[Slab]:
        n_tiles, device = len(self.tiles), self.run.device
        if not self.options.gradient:  # and so no layers
            return self.layout.slabs(n_tiles, 2 * n_tiles)
        room = min(device.largest_buffer, device.memory // 4)
        return self.layout.slabs(n_tiles, min(MOST_LAYERS, room // self._layer_bytes))

    @property
    def _layer_bytes(self) -> int:
        return 4 * self.tiles.n_slots * self.run.dtype.itemsize

    def _sizes(self) -> dict[str, int]:
        slots, born_parts = self.tiles.n_slots, self.layout.chunks(len(self.tiles))[0]
        layers = max(slab.n_layers for slab in self.slabs) if self.options.gradient else 0
        return {
            "born_sums": born_parts * slots, "layers": 4 * layers * slots, "totals": 4 * slots,
            "energies": 4 * self.slabs[0].all_chunks * self.n_rows,
        }  # fmt: skip

    def _born(self) -> list[KeptLaunch]:
        layout, n_tiles, fused = self.layout, len(self.tiles), self.fused
        self._count_arrivals()
        n_parts, per_part = layout.chunks(n_tiles)
        columns = [] if fused else [*self.named("x", "y", "z"), self.spheres.rho]
        more = [*self.solvent_constants(), *self._atom_tables(), self.buffers["arrivals"]] if fused else []
        sums = self.run.keep(
            "solvent/tiled.cl", "born_sums", (self.n_rows * layout.tile, n_parts), (layout.tile, 1), np.int32(n_tiles),
            np.int32(per_part), *self.reaches, self.buffers["spheres"], *columns,
            *self.named("series", "origins", "extents"), self.spheres.counts, *more, self.buffers["born_sums"],
            TILE=layout.tile, ROW=layout.row, FUSED=int(fused), **self.integral_macros,
            **(self.gb_macros if fused else {}),
        )  # fmt: skip
        return [sums] if fused else [sums, self._atom_terms(n_parts, layout.shares)]

    def _no_radii(self) -> list[KeptLaunch]:
        self._count_arrivals()
        return super()._no_radii()

    def _count_arrivals(self) -> None:
        """Make the counters of arrivals, which the groups of each launch leave at zero."""
        self.buffers["arrivals"] = self.run.zeros(self.batch * len(self.tiles), np.int32)

    def _pairs(self) -> list[KeptLaunch]:
        then = Follows.KEEP_WEIGHTS if self.options.chain else Follows.KEEP_RESULTS
        return self._over_squares(
            "energy/pair_squares.cl", "pair_squares", True, then, self._pair_model(),
            *self.named("points", "origins", "extents", "largest_born"), *self.tables.masks, **self._pair_macros,
        )  # fmt: skip

    def _chain(self) -> list[KeptLaunch]:
        tables = self.tables
        return self._over_squares(
            "energy/chain_squares.cl", "chain_squares", False, Follows.KEEP_RESULTS, *self.reaches,
            self.buffers["spheres"],
            self.spheres.rho, tables.slopes, tables.slope_columns, *self.named("origins", "extents"), GRADIENT=1,
            **self.integral_macros,
        )  # fmt: skip

    def _finish(self) -> list[KeptLaunch]:
        return []

    def _over_squares(
        self, file: str, name: str, begins: bool, then: Follows, *args: Argument, **defines: int
    ) -> list[KeptLaunch]:
        """A pass over pairs, slab by slab. begins : whether it is the first; then : what follows the last slab."""
        layout, n_tiles, slabs, launches = self.layout, len(self.tiles), self.slabs, []
        macros = {"TILE": layout.tile, "ROW": layout.row, **self.term_macros, **self.begun_macros}
        for slab in slabs:
            last = slab is slabs[-1]
            collected = self._collected(slab, begins and slab is slabs[0], then if last else Follows.KEEP_TOTALS)
            launches.append(
                self.run.keep(
                    file, name, (self.n_rows * layout.tile, slab.n_chunks * layout.split), (layout.tile, layout.split),
                    np.int32(n_tiles), *args, *collected, FUSED=int(self.fused), SHARES=layout.split, **macros,
                    **defines,
                )
            )  # fmt: skip
            # Without a gradient nothing is to be added up but energies, in the end.
            if not self.fused and (self.options.gradient or last):
                launches.append(
                    self.each_slot(
                        "energy/collect.cl", "collect", *collected, shares=layout.shares,
                        SHARES=layout.shares, ROW=layout.row, FUSED=0, **self.result_macros,
                        **self.begun_macros,
                    )
                )  # fmt: skip
        return launches

    def _collected(self, slab: Slab, begins: bool, then: Follows) -> list[Argument]:
        """COLLECT_ARGUMENTS of cl/energy/collect.clh."""
        steps = RING_STEPS.pack(
            self.run.precision,
            **asdict(slab),
            n_chunks=slab.n_chunks,
            n_layers=slab.n_layers,
            begins=begins,
            then=then,
        )
        return [
            steps, np.int32(len(self.atoms)), self.spheres.counts, self.spheres.order,
            *self.named("traits", "singles", "layers", "energies", "totals", "arrivals", "weights", "results"),
        ]  # fmt: skip
