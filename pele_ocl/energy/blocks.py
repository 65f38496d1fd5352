"""Passes that visit each pair once, in blocks of two tiles and with vectors; for CPUs."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..opencl.interface import RUNS
from .bonded.kernels import BondedTerms
from .layout import BlocksLayout, Runs
from .passes import SumsOfPairs
from .tables import TileOrder

if TYPE_CHECKING:
    from ..opencl.binding import Launch
    from ..opencl.kernel import Arguments
    from .terms import TermKernels

# Largest number of tiles for which all passes of one conformation are one launch. A launch costs PoCL 4 us per core,
# which is little compared with the passes of larger molecules.
MOST_JOINED = 256
LOTS = 4  # work units per core in steps over single tiles
COUNTERS = 16 * 32  # number of integers, as in cl/energy/blocks_joined.cl


class Blocks(SumsOfPairs[BlocksLayout]):
    """A few work-items divide the rows of tiles; each has separate sums for all atoms."""

    layout_type = BlocksLayout

    @property
    def _sums_born_pairs(self) -> bool:
        return not self.model.gb_model.vacuum and self.tree is None and self.of_surface is None

    @cached_property
    def runs(self) -> Runs | None:
        """Runs of tiles as parts; None if each part visits every n-th tile."""
        if not self.layout.in_runs or not self._sums_born_pairs or self.tiles.first_frozen < len(self.tiles):
            return None
        return Runs.of(len(self.tiles), self.layout.in_runs)

    @property
    def n_parts(self) -> int:
        return self.runs.n_parts if self.runs else self.layout.parts(len(self.tiles))

    @property
    def slots_of_sums(self) -> int:
        return self.runs.tiles_of_sums * self.layout.tile if self.runs else self.tiles.n_slots

    @cached_property
    def _walks(self) -> Arguments:
        """Arguments of pair passes: the number of parts and, if parts are runs of tiles, the runs."""
        if self.runs is None:
            return dict(n_parts=self.n_parts)
        runs = self.runs
        packed = RUNS.pack(
            self.queue.precision, per_run=runs.per_run, n_runs=runs.n_runs, per_cut=runs.per_cut, met=runs.met
        )
        return dict(n_parts=self.n_parts, runs=packed)

    @cached_property
    def _parts(self) -> Arguments:
        if self.runs is None:
            return self._walks
        starts, places = (self.queue.upload(table, np.int32) for table in self.runs.places_of_sums(len(self.tiles)))
        return dict(**self._walks, sum_starts=starts, sum_places=places)

    @property
    def _parts_macros(self) -> dict[str, int]:
        return {"RUNS": int(self.runs is not None)}

    @property
    def joined(self) -> bool:
        """Return whether all passes are joined in one launch."""
        device = self.queue.device
        is_able = device.kind == "CPU" and device.has_device_fence and device.can_yield
        is_small = self.batch == 1 and len(self.tiles) <= MOST_JOINED and self.frozen is None
        # Separate: gradients at fixed radii, and LCPO surfaces, whose gradient is added before the bonded terms.
        is_apart = (self.options.gradient and not self.options.chain) or self.surface is not None
        if not is_able or not is_small or not self._sums_born_pairs or is_apart or self.queue.is_shared:
            return False
        bonded = (each for each in self.contents.grouped if isinstance(each, BondedTerms))
        return all(each.is_of_single_items(self.context) for each in bonded)

    def _runs_first(self, kernels: TermKernels) -> bool:
        return (isinstance(kernels, BondedTerms) and self.joined) or super()._runs_first(kernels)

    @property
    def n_born_parts(self) -> int:
        return 0 if self.model.gb_model.vacuum else self.n_parts

    @classmethod
    def tile_order(cls, layout: BlocksLayout) -> TileOrder:
        return TileOrder(ring=True, own_vectors=False)

    def _sizes(self) -> dict[str, int]:
        return super()._sizes() | {"born_sums": self.n_parts * self.slots_of_sums}

    def _passes(self) -> list[Launch]:
        return [self._all_joined()] if self.joined else super()._passes()

    def _all_joined(self) -> Launch:
        options, tables, spheres, first = self.options, self.tables, self.spheres, self.first_kernels
        n_tiles, units = len(self.tiles), self.queue.device.compute_units
        part = None if first is None else first.part(self.context, 0, 1)
        # Twice the cores, since PoCL gives the first core two groups and the last one none.
        n_groups = 2 * units
        slopes = dict(slopes=tables.slopes, slope_columns=tables.slope_columns) if options.chain else {}
        arguments = dict(
            n_groups=n_groups, n_tiles=n_tiles, per_lot=-(-n_tiles // (LOTS * units)), step=self.encoding.step,
            counters=self.queue.zeros(COUNTERS, np.int32), columns=spheres.coefficient_columns, rho=spheres.rho,
            **self.reaches, **self.solvent_constants(), **slopes,
            **self.named("positions", "born_sums", "pair_sums", "weights"),
        )  # fmt: skip
        for further in (
            self._to_finish(), part.arguments if part else {}, self.place_arguments(), self._atom_tables(),
            self._pair_tables(),
        ):  # fmt: skip
            arguments |= further  # some are the same
        return self.queue.bind(
            "energy/blocks_joined.cl", "blocks_joined", (n_groups, 1), (1, 1), arguments, width=self.layout.width,
            TILE=self.layout.tile, FUSED=1, CHAIN=int(options.chain), PER_ATOM=int(options.per_atom),
            **self.first_macros, **self.encoding.macros, **self.integral_macros, **self.gb_macros, **self._pair_macros,
            **self._parts_macros, **(part.macros if part else {}),
        )  # fmt: skip

    def _born(self) -> list[Launch]:
        spheres, buffers = self.spheres, self.buffers
        arguments = dict(
            first_frozen=self.first_frozen, first_tile=0, last_tile=len(self.tiles), atoms=buffers["spheres"],
            s=spheres.scaled, rho=spheres.rho, columns=spheres.coefficient_columns, counts=spheres.counts,
            sums=buffers["born_sums"], **self.reaches, **self.named("x", "y", "z", "series", "origins", "extents"),
        )  # fmt: skip
        sums = self._over_blocks("solvent/blocks.cl", "born_sums_blocks", arguments, **self.integral_macros)
        return [sums, self._atom_terms(self._parts, **self._parts_macros)]

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
            dict(counts=self.spheres.counts, sums=self.buffers["pair_sums"], **self._parts,
                 **self.named("born", "singles", "weights")),
            SHARES=1, **self.gb_macros, **self._parts_macros,
        )  # fmt: skip
        chain = self._over_blocks(
            "energy/chain_blocks.cl", "chain_blocks",
            dict(first_frozen=self.first_frozen, sums=self.buffers["pair_sums"], **self._chain_tables()),
            **self.integral_macros,
        )  # fmt: skip
        return [weights, chain]

    def _over_blocks(self, file: str, name: str, arguments: Arguments, **defines: int) -> Launch:
        """Bind a pass over pairs with one work-item per part. arguments : all but n_tiles and n_parts"""
        return self.queue.bind(
            file, name, (self.n_parts, 1), (1, 1), dict(n_tiles=len(self.tiles), **self._walks, **arguments),
            width=self.layout.width, TILE=self.layout.tile, **self._parts_macros, **defines,
        )  # fmt: skip
