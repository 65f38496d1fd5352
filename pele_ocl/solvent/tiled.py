"""Born radii from sums over near and far tiles of sorted atoms, or with a tree of boxes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from ..plan.passes import bound
from ..tiles.tiles import born_dispatch
from .passes import SolventPasses
from .tree_sums import TreeShape, TreeSums

if TYPE_CHECKING:
    from ..opencl.binding import Launch

COUNTERS = 4 * 32  # number of integers per conformation, as in cl/solvent/joined.cl

# Largest number of pairs in a launch of blocks; longer ones would block a display, and delay progress reports.
LAUNCH_PAIRS = 4e8


class Tiled(SolventPasses):
    """Rows of tiles on GPUs, blocks of two tiles with vectors of atoms on CPUs.

    Atoms are sorted into tiles once; bonds keep the atoms of a tile together in all conformations. If they drift apart,
    tiles grow and more pairs are computed as near ones, which takes longer but is equally accurate.
    """

    @property
    def n_parts(self) -> int:
        layout, n_tiles = self.layout, len(self.tiles)
        return layout.parts(n_tiles) if layout.blocks else layout.chunks(n_tiles)[0]

    def _sizes(self) -> dict[str, int]:
        return {"sums": self.n_parts * self.tiles.n_slots}

    def _born(self) -> list[Launch]:
        spheres = self.spheres
        arguments = dict(
            n_parts=self.n_parts, rho=spheres.rho, radii=spheres.intrinsic, **self.solvent_constants(),
            **self.named("sums", "inv_born"),
        )  # fmt: skip
        radii = self.of_atoms("radii_of_sums", arguments)
        return [*(self._blocks() if self.layout.blocks else self._rows()), radii]

    def _rows(self) -> Sequence[Launch]:
        """Bind sums over rows, which compute each pair twice."""
        layout, spheres, n_tiles = self.layout, self.spheres, len(self.tiles)
        n_chunks, tiles_per_chunk = layout.chunks(n_tiles)
        dispatch = self.queue.upload(born_dispatch(self.tiles, layout.row, tiles_per_chunk), np.int32)
        arguments = dict(
            n_tiles=n_tiles, first_frozen=n_tiles, tiles_per_chunk=tiles_per_chunk, rho=spheres.rho,
            counts=spheres.counts, dispatch=dispatch, **self.reaches, **self.columns,
            **self.named("spheres", "series", "origins", "extents", "sums"),
        )  # fmt: skip
        return [
            self.queue.bind(
                "solvent/tiled.cl", "born_sums", (layout.rows(n_tiles), n_chunks * layout.split),
                (layout.tile // layout.width, layout.split), arguments, width=layout.width, cost=self.pairs,
                TILE=layout.tile, ROW=layout.row, SHARES=layout.split, **self.integral_macros,
            )
        ]  # fmt: skip

    def _joined(self) -> list[Launch]:
        layout, spheres, n_tiles, queue = self.layout, self.spheres, len(self.tiles), self.queue
        is_small = 0 < self.most_joined and layout.vectors == layout.row == 1 and layout.shares == layout.split
        if not (layout.joined and is_small and queue.device.kind == "GPU" and queue.device.has_device_fence):
            return []
        n_chunks, tiles_per_chunk = layout.chunks(n_tiles)
        n_groups = -(-n_tiles // layout.split) + n_tiles * (n_chunks + -(-n_chunks // layout.split))
        most = min(self.batch, self.most_joined)
        arguments = dict(
            n_tiles=n_tiles, n_atoms=len(self.atoms), step=self.encoding.step, tiles_per_chunk=tiles_per_chunk,
            counts=spheres.counts, rho=spheres.rho, radii=spheres.intrinsic,
            arrivals=queue.zeros(most * n_tiles, np.int32), counters=queue.zeros(most * COUNTERS, np.int32),
            **self.reaches, **self.solvent_constants(), **self.potential_model, **self.place_arguments(),
            **self.named("positions", "sums", "inv_born", "potential", "results"),
        )  # fmt: skip
        return [
            queue.bind(
                "solvent/joined.cl", "joined", (n_groups * layout.tile, layout.split), (layout.tile, layout.split),
                arguments, TILE=layout.tile, ROW=1, SHARES=layout.split, VECTORS=1, FUSED=1, ENERGIES=1,
                SCREENED=int(self.model.kappa > 0), **self.encoding.macros, **self.integral_macros, **self.gb_macros,
            )
        ]  # fmt: skip

    def _blocks(self) -> Sequence[Launch]:
        """Bind sums over blocks, which compute each pair once; each launch takes a range of tiles."""
        layout, spheres, n_tiles, n_parts = self.layout, self.spheres, len(self.tiles), self.n_parts
        rows = n_parts * max(1, int(LAUNCH_PAIRS / self.pairs * n_tiles / n_parts))
        bounds = [*range(0, n_tiles, rows), n_tiles]
        arguments = dict(
            n_tiles=n_tiles, n_parts=n_parts, first_frozen=n_tiles, atoms=self.buffers["spheres"], s=spheres.scaled,
            rho=spheres.rho, columns=spheres.coefficient_columns, counts=spheres.counts, **self.reaches,
            **self.named("x", "y", "z", "series", "origins", "extents", "sums"),
        )  # fmt: skip
        return [
            self.queue.bind(
                "solvent/blocks.cl", "born_sums_blocks", (n_parts, 1), (1, 1),
                dict(first_tile=first, last_tile=last, **arguments), width=layout.width,
                cost=self.pairs * (last - first) / n_tiles, divisible=0, TILE=layout.tile, **self.integral_macros,
            )
            for first, last in pairwise(bounds)
        ]  # fmt: skip


class Tree(SolventPasses):
    """Near atoms singly, far boxes by multipole moments; docs/theory/tree.md.

    Several devices can divide the work, since the sums of each atom are independent.
    """

    @cached_property
    def tree(self) -> TreeSums:
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
        """Restrict later launches to atoms of the tiles from `first` to `end`; all atoms remain sources."""
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
