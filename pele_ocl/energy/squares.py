"""Each pair once, by tile pairs in groups; for GPUs."""

from __future__ import annotations

from dataclasses import asdict
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..opencl.shared import RING_STEPS, Follows
from ..tiled.dispatch import born_dispatch, ring_dispatch
from .layout import MOST_LAYERS, Slab, SquaresLayout
from .masks import TileOrder
from .passes import EnergyPasses

if TYPE_CHECKING:
    from ..opencl.launch import Argument, KeptLaunch
    from ..opencl.memory import Buffer
    from ..solvent.tree_sums import TreeSums


# Tiles up to which all passes of one conformation are one launch. Launches of several have more to do, and a group that
# waits for others takes the place of one that could compute.
MOST_JOINED = 64

COUNTERS = 6 * 32  # integers of a conformation in cl/energy/squares/joined.cl


class Squares(EnergyPasses[SquaresLayout]):
    """A group owns a row of tiles and meets half a ring of rows, in layers for what each tile gets.

    The kernels' side of it is cl/energy/squares/ring.clh.
    """

    layout_type = SquaresLayout

    @classmethod
    def tile_order(cls, layout: SquaresLayout) -> TileOrder:
        return TileOrder(ring=True, own_vectors=True, row_tiles=layout.row)

    @property
    def fused(self) -> bool:
        """Whether the last group of a launch goes on with what all of them left: on GPUs, for which it is made."""
        return self.layout.fused and self.run.device.kind == "GPU" and self.run.device.has_device_fence

    @property
    def joined(self) -> bool:
        """Whether all passes are one launch."""
        is_small = self.batch == 1 and len(self.tiles) <= MOST_JOINED and len(self.slabs) == 1 and self.frozen is None
        # In float64 arithmetic takes longer than launches, and compilers round it in other ways.
        is_bound_by_launches = is_small and self.run.precision == "float32"
        in_other_ways = self.model.gb_model.vacuum or self.tree is not None or self.of_surface is not None
        one_by_one = in_other_ways or self.run.is_shared
        return self.layout.joined and self.fused and is_bound_by_launches and not one_by_one

    @property
    def n_born_parts(self) -> int:
        return 0 if self.model.gb_model.vacuum else self.layout.chunks(len(self.tiles))[0]

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

    def _passes(self) -> list[KeptLaunch]:
        return [self._all_joined()] if self.joined else super()._passes()

    def _all_joined(self) -> KeptLaunch:
        """The one launch of cl/energy/squares/joined.cl."""
        layout, options, tables, spheres, bonded = self.layout, self.options, self.tables, self.spheres, self._bonded
        n_tiles, (slab,), (n_parts, per_part) = len(self.tiles), self.slabs, layout.chunks(len(self.tiles))
        items = layout.tile * layout.split
        self._count_arrivals()
        counters = self.run.zeros(self.batch * COUNTERS, np.int32)
        by_atom, solvent = self.solvent_constants()
        n_groups = -(-n_tiles // layout.split) + (bonded.n_groups(self) if bonded else 0)
        n_groups += self.n_rows * (n_parts + slab.n_chunks * (2 if options.chain else 1))
        then = Follows.KEEP_WEIGHTS if options.chain else Follows.KEEP_RESULTS
        return self.run.keep(
            "energy/squares/joined.cl", "joined", (n_groups * layout.tile, layout.split), (layout.tile, layout.split),
            np.int32(n_tiles), np.int32(len(self.atoms)), self.run.dtype.type(self.encoding.step),
            self.encoding.origin_step, np.int32(per_part), *self.reaches, by_atom, solvent, self._pair_model(),
            self._steps(slab, True, then), *(bonded.arguments(self, 0, items) if bonded else ()),
            self.buffers["positions"], spheres.order, spheres.counts, spheres.largest_s, spheres.scaled,
            spheres.charges, spheres.coefficients, tables.parameters, *tables.masks,
            *((tables.slopes, tables.slope_columns) if options.chain else ()),
            *self.named("spheres", "points", "x", "y", "z", "series", "origins", "extents", "born_sums", "traits"),
            *self.named("singles", "born", "largest_born", "layers", "energies", "totals", "arrivals", "weights"),
            self.buffers["results"], counters, TILE=layout.tile, ROW=layout.row, SHARES=layout.split, FUSED=1,
            CHAIN=int(options.chain), BONDED=int(bonded is not None), **self.begun_macros, **self.term_macros,
            **self.encoding.macros, **self.integral_macros, **self.gb_macros, **self._pair_macros,
            **(bonded.macros(self, items) if bonded else {}),
        )  # fmt: skip

    def _born(self) -> list[KeptLaunch]:
        layout, n_tiles, fused = self.layout, len(self.tiles), self.fused
        self._count_arrivals()
        n_parts, per_part = layout.chunks(n_tiles)
        sums = [
            np.int32(n_tiles), self.first_frozen, np.int32(per_part), *self.reaches, self.buffers["spheres"],
            self.spheres.rho, *self.named("series", "origins", "extents"), self.spheres.counts,
            self.buffers["born_sums"],
        ]  # fmt: skip
        shape, group = (self.n_rows * layout.tile, n_parts * layout.split), (layout.tile, layout.split)
        macros = {"TILE": layout.tile, "ROW": layout.row, "SHARES": layout.split, **self.integral_macros}
        if not fused:
            dispatch = self.run.upload(born_dispatch(self.tiles, layout.row, per_part), np.int32)
            born = self.run.keep("solvent/tiled.cl", "born_sums", shape, group, *sums, dispatch, **macros)
            return [born, self._atom_terms(n_parts, layout.shares)]
        return [
            self.run.keep(
                "energy/squares/born.cl", "born_squares", shape, group, *sums, *self.solvent_constants(),
                self.buffers["arrivals"], *self._atom_tables(), FUSED=1, **macros, **self.gb_macros,
            )
        ]  # fmt: skip

    def _no_radii(self) -> list[KeptLaunch]:
        self._count_arrivals()
        return super()._no_radii()

    def _born_of(self, tree: TreeSums) -> list[KeptLaunch]:
        self._count_arrivals()
        return super()._born_of(tree)

    def _count_arrivals(self) -> None:
        """Make the counters of arrivals, which the groups of each launch leave at zero."""
        self.buffers["arrivals"] = self.run.zeros(self.batch * len(self.tiles), np.int32)

    def _pairs(self) -> list[KeptLaunch]:
        then = Follows.KEEP_WEIGHTS if self.options.chain else Follows.KEEP_RESULTS
        return self._over_squares(
            "energy/squares/pair.cl", "pair_squares", True, then, self.first_frozen_pair, self._pair_model(),
            *self.named("points", "origins", "extents", "largest_born"), *self.tables.masks, **self._pair_macros,
        )  # fmt: skip

    def _chain(self) -> list[KeptLaunch]:
        tables = self.tables
        return self._over_squares(
            "energy/squares/chain.cl", "chain_squares", False, Follows.KEEP_RESULTS, self.first_frozen,
            *self.reaches, self.buffers["spheres"], self.spheres.rho, tables.slopes, tables.slope_columns,
            *self.named("origins", "extents"), GRADIENT=1,
            **self.integral_macros,
        )  # fmt: skip

    def _finish(self) -> list[KeptLaunch]:
        return []

    def _over_squares(
        self, file: str, name: str, begins: bool, then: Follows, *args: Argument, **defines: int
    ) -> list[KeptLaunch]:
        """A pass over pairs, slab by slab. begins : whether it is the first; then : what follows the last slab."""
        layout, n_tiles, slabs, launches = self.layout, len(self.tiles), self.slabs, []
        behind = {**self.term_macros, **self.begun_macros}
        if not self.fused:  # the pass leaves no results itself, and one build serves all terms behind it
            behind = dict.fromkeys(behind, 0)
        macros = {"TILE": layout.tile, "ROW": layout.row, **behind}
        for slab, dispatch in zip(slabs, self._dispatches, strict=True):
            last = slab is slabs[-1]
            steps = self._steps(slab, begins and slab is slabs[0], then if last else Follows.KEEP_TOTALS)
            collected = [steps, *self._collected()]
            launches.append(
                self.run.keep(
                    file, name, (self.n_rows * layout.tile, slab.n_chunks * layout.split), (layout.tile, layout.split),
                    np.int32(n_tiles), *args, *collected, dispatch, FUSED=int(self.fused), SHARES=layout.split,
                    **macros, **defines,
                )
            )  # fmt: skip
            # Without a gradient nothing is to be added up but energies, in the end.
            if not self.fused and (self.options.gradient or last):
                launches.append(
                    self.each_slot(
                        "energy/squares/collect.cl", "collect", *collected, shares=layout.shares,
                        SHARES=layout.shares, ROW=layout.row, FUSED=0, **self.result_macros,
                        **self.begun_macros,
                    )
                )  # fmt: skip
        return launches

    @cached_property
    def _dispatches(self) -> list[Buffer]:
        """The rows and chunks of the groups of each slab."""
        row, run = self.layout.row, self.run
        return [
            run.upload(ring_dispatch(self.tiles, row, slab.steps, slab.steps_per_chunk), np.int32)
            for slab in self.slabs
        ]  # fmt: skip

    def _steps(self, slab: Slab, begins: bool, then: Follows) -> np.void:
        """RingSteps of cl/energy/squares/ring.clh."""
        return RING_STEPS.pack(
            self.run.precision,
            **asdict(slab),
            n_chunks=slab.n_chunks,
            n_layers=slab.n_layers,
            begins=begins,
            then=then,
        )

    def _collected(self) -> list[Argument]:
        """COLLECT_ARGUMENTS of cl/energy/squares/collect.clh."""
        return [
            np.int32(len(self.atoms)), self.spheres.counts, self.spheres.order,
            *self.named("traits", "singles", "layers", "energies", "totals", "arrivals", "weights", "results"),
        ]  # fmt: skip
