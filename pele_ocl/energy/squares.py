"""Passes that visit each pair once, as pairs of tiles in work-groups; for GPUs."""

from __future__ import annotations

from dataclasses import asdict
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..opencl.interface import RING_STEPS, Follows
from ..tiles.tiles import born_dispatch, ring_dispatch
from .layout import MOST_LAYERS, Slab, SquaresLayout
from .passes import EnergyPasses
from .tables import TileOrder

if TYPE_CHECKING:
    from ..opencl.binding import Array, Launch
    from ..opencl.kernel import Arguments
    from ..solvent.tree_sums import TreeSums
    from .sgb import SurfaceRadii


# Largest number of tiles for which all passes of one conformation are one launch. With more work per launch, groups
# that wait for others would block groups that could compute.
MOST_JOINED = 64

COUNTERS = 6 * 32  # number of integers per conformation, as in cl/energy/squares/joined.cl


class Squares(EnergyPasses[SquaresLayout]):
    """A work-group computes a row of tiles with half the ring of rows; partial sums are kept in layers per tile.

    The kernels' part is described in cl/energy/squares/ring.clh.
    """

    layout_type = SquaresLayout

    @classmethod
    def tile_order(cls, layout: SquaresLayout) -> TileOrder:
        return TileOrder(ring=True, own_vectors=True, row_tiles=layout.row)

    @property
    def fused(self) -> bool:
        """Return whether the last group to write to a tile sums its layers; needs a GPU with device fences."""
        return self.layout.fused and self.queue.device.kind == "GPU" and self.queue.device.has_device_fence

    @property
    def joined(self) -> bool:
        """Return whether all passes are joined in one launch."""
        is_small = self.batch == 1 and len(self.tiles) <= MOST_JOINED and len(self.slabs) == 1 and self.frozen is None
        # In float64, arithmetic takes longer than launches, and compilers round it differently in the joined kernel.
        is_bound_by_launches = is_small and self.queue.precision == "float32"
        in_other_ways = self.model.gb_model.vacuum or self.tree is not None or self.of_surface is not None
        one_by_one = in_other_ways or self.queue.is_shared
        return self.layout.joined and self.fused and is_bound_by_launches and not one_by_one

    @property
    def n_born_parts(self) -> int:
        return 0 if self.model.gb_model.vacuum else self.layout.chunks(len(self.tiles))[0]

    @property
    def n_rows(self) -> int:
        return self.layout.rows(len(self.tiles))

    @property
    def slabs(self) -> list[Slab]:
        n_tiles, device = len(self.tiles), self.queue.device
        if not self.options.gradient:  # no layers are needed
            return self.layout.slabs(n_tiles, 2 * n_tiles)
        room = min(device.largest_buffer, device.memory // 4)
        return self.layout.slabs(n_tiles, min(MOST_LAYERS, room // self._layer_bytes))

    @property
    def _layer_bytes(self) -> int:
        return 4 * self.tiles.n_slots * self.queue.dtype.itemsize

    def _sizes(self) -> dict[str, int]:
        slots, born_parts = self.tiles.n_slots, self.layout.chunks(len(self.tiles))[0]
        layers = max(slab.n_layers for slab in self.slabs) if self.options.gradient else 0
        return {
            "born_sums": born_parts * slots, "layers": 4 * layers * slots, "totals": 4 * slots,
            "energies": 4 * self.slabs[0].all_chunks * self.n_rows,
        }  # fmt: skip

    def _passes(self) -> list[Launch]:
        return [self._all_joined()] if self.joined else super()._passes()

    def _all_joined(self) -> Launch:
        layout, options, tables, spheres, first = (
            self.layout,
            self.options,
            self.tables,
            self.spheres,
            self.first_kernels,
        )
        n_tiles, (slab,), (n_parts, per_part) = len(self.tiles), self.slabs, layout.chunks(len(self.tiles))
        self._count_arrivals()
        part = None if first is None else first.part(self.context, 0, layout.tile * layout.split)
        n_groups = -(-n_tiles // layout.split) + (part.n_groups if part else 0)
        n_groups += self.n_rows * (n_parts + slab.n_chunks * (2 if options.chain else 1))
        then = Follows.KEEP_WEIGHTS if options.chain else Follows.KEEP_RESULTS
        slopes = dict(slopes=tables.slopes, slope_columns=tables.slope_columns) if options.chain else {}
        arguments = dict(
            n_tiles=n_tiles, n_atoms=len(self.atoms), n_results=self.result_sizes["n_results"],
            step=self.encoding.step, tiles_per_chunk=per_part, model=self._pair_model(),
            ring=self._steps(slab, True, then), counts=spheres.counts, sums=self.buffers["born_sums"],
            counters=self.queue.zeros(self.batch * COUNTERS, np.int32), **self.reaches, **self.solvent_constants(),
            **(part.arguments if part else {}), **self.place_arguments(), **self._atom_tables(), **tables.masks,
            **slopes,
            **self.named("positions", "layers", "energies", "totals", "arrivals", "weights", "results"),
        )  # fmt: skip
        return self.queue.bind(
            "energy/squares/joined.cl", "joined", (n_groups * layout.tile, layout.split), (layout.tile, layout.split),
            arguments, TILE=layout.tile, ROW=layout.row, SHARES=layout.split, FUSED=1, CHAIN=int(options.chain),
            **self.first_macros, **self.encoding.macros, **self.integral_macros, **self.gb_macros, **self._pair_macros,
            **(part.macros if part else {}),
        )  # fmt: skip

    def _born(self) -> list[Launch]:
        layout, n_tiles, fused = self.layout, len(self.tiles), self.fused
        self._count_arrivals()
        n_parts, per_part = layout.chunks(n_tiles)
        sums = dict(
            n_tiles=n_tiles, first_frozen=self.first_frozen, tiles_per_chunk=per_part, rho=self.spheres.rho,
            counts=self.spheres.counts, sums=self.buffers["born_sums"], **self.reaches,
            **self.named("spheres", "series", "origins", "extents"),
        )  # fmt: skip
        shape, group = (self.n_rows * layout.tile, n_parts * layout.split), (layout.tile, layout.split)
        macros = {"TILE": layout.tile, "ROW": layout.row, "SHARES": layout.split, **self.integral_macros}
        if not fused:
            dispatch = self.queue.upload(born_dispatch(self.tiles, layout.row, per_part), np.int32)
            born = self.queue.bind(
                "solvent/tiled.cl", "born_sums", shape, group, {**sums, "dispatch": dispatch}, **macros
            )  # fmt: skip
            return [born, self._atom_terms(n_parts, layout.shares)]
        return [
            self.queue.bind(
                "energy/squares/born.cl", "born_squares", shape, group,
                dict(**sums, **self.solvent_constants(), **self.named("arrivals"), **self._atom_tables()),
                FUSED=1, **macros, **self.gb_macros,
            )
        ]  # fmt: skip

    def _no_radii(self) -> list[Launch]:
        self._count_arrivals()
        return super()._no_radii()

    def _born_of(self, tree: TreeSums) -> list[Launch]:
        self._count_arrivals()
        return super()._born_of(tree)

    def _born_of_surface(self, surface: SurfaceRadii) -> list[Launch]:
        self._count_arrivals()
        return super()._born_of_surface(surface)

    def _count_arrivals(self) -> None:
        """Allocate the arrival counters, which the groups of each launch reset to zero."""
        self.buffers["arrivals"] = self.queue.zeros(self.batch * len(self.tiles), np.int32)

    def _pairs(self) -> list[Launch]:
        then = Follows.KEEP_WEIGHTS if self.options.chain else Follows.KEEP_RESULTS
        arguments = dict(
            first_frozen_pair=self.first_frozen_pair, model=self._pair_model(), **self.tables.masks,
            **self.named("points", "origins", "extents", "largest_born"),
        )  # fmt: skip
        return self._over_squares(
            "energy/squares/pair.cl", "pair_squares", True, then, arguments, **self._pair_macros
        )  # fmt: skip

    def _chain(self) -> list[Launch]:
        tables = self.tables
        arguments = dict(
            first_frozen=self.first_frozen, rho=self.spheres.rho, slopes=tables.slopes,
            slope_columns=tables.slope_columns, **self.reaches, **self.named("spheres", "origins", "extents"),
        )  # fmt: skip
        return self._over_squares(
            "energy/squares/chain.cl", "chain_squares", False, Follows.KEEP_RESULTS, arguments, GRADIENT=1,
            **self.integral_macros,
        )  # fmt: skip

    def _finish(self) -> list[Launch]:
        return []

    def _over_squares(
        self, file: str, name: str, is_first: bool, then: Follows, arguments: Arguments, **defines: int
    ) -> list[Launch]:
        """Bind a pass over pairs, slab by slab.

        is_first : whether it is the first such pass; then : what follows the last slab
        arguments : all but n_tiles, ring, dispatch and those of Layers
        """
        layout, n_tiles, slabs, launches = self.layout, len(self.tiles), self.slabs, []
        # Unless fused, a pass writes no results, so that TERMS_FIRST makes no difference.
        first_macros = self.first_macros if self.fused else {"TERMS_FIRST": 0}
        macros = {"TILE": layout.tile, "ROW": layout.row, **first_macros}
        for slab, dispatch in zip(slabs, self._dispatches, strict=True):
            last = slab is slabs[-1]
            steps = self._steps(slab, is_first and slab is slabs[0], then if last else Follows.KEEP_TOTALS)
            collected = dict(ring=steps, **self._collected())
            launches.append(
                self.queue.bind(
                    file, name, (self.n_rows * layout.tile, slab.n_chunks * layout.split), (layout.tile, layout.split),
                    dict(n_tiles=n_tiles, dispatch=dispatch, **arguments, **collected),
                    FUSED=int(self.fused), SHARES=layout.split, **macros, **defines,
                )
            )  # fmt: skip
            # Without gradient only energies have to be summed, after the last slab.
            if not self.fused and (self.options.gradient or last):
                launches.append(
                    self.each_slot(
                        "energy/squares/collect.cl", "collect", collected, shares=layout.shares,
                        SHARES=layout.shares, ROW=layout.row, FUSED=0, **self.result_macros,
                        **self.first_macros,
                    )
                )  # fmt: skip
        return launches

    @cached_property
    def _dispatches(self) -> list[Array]:
        """Dispatch tables of the slabs: row and chunk of each group."""
        row, queue = self.layout.row, self.queue
        return [
            queue.upload(ring_dispatch(self.tiles, row, slab.steps, slab.steps_per_chunk), np.int32)
            for slab in self.slabs
        ]  # fmt: skip

    def _steps(self, slab: Slab, starts_totals: bool, then: Follows) -> np.void:
        """RingSteps of cl/energy/squares/ring.clh."""
        return RING_STEPS.pack(
            self.queue.precision,
            **asdict(slab),
            n_chunks=slab.n_chunks,
            n_layers=slab.n_layers,
            starts_totals=starts_totals,
            then=then,
        )

    def _collected(self) -> Arguments:
        """Return the fields of Layers in cl/energy/squares/collect.clh except the steps."""
        return dict(
            n_atoms=len(self.atoms), n_results=self.result_sizes["n_results"], counts=self.spheres.counts,
            order=self.spheres.order,
            **self.named("traits", "singles", "layers", "energies", "totals", "arrivals", "weights", "results"),
        )  # fmt: skip
