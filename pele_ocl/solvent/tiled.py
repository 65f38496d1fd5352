"""Born radii from sums over near and far tiles of sorted atoms."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from ..tiled.dispatch import born_dispatch
from .passes import SolventPasses

if TYPE_CHECKING:
    from ..opencl.launch import KeptLaunch

COUNTERS = 4 * 32  # integers of a conformation in cl/solvent/joined.cl

# Pairs of a launch of blocks at most: more would keep a display waiting, and progress untold.
LAUNCH_PAIRS = 4e8


class Tiled(SolventPasses):
    """Row by row on GPUs, blocks of two tiles with vectors of atoms on CPUs.

    Atoms are sorted into tiles once: bonds keep those of a tile together in all conformations of a molecule. Where they
    do drift apart boxes grow and more pairs are computed as near ones, which takes longer but is as exact.
    """

    @property
    def n_parts(self) -> int:
        """Parts in which the Born sums come."""
        layout, n_tiles = self.layout, len(self.tiles)
        return layout.parts(n_tiles) if layout.blocks else layout.chunks(n_tiles)[0]

    def _sizes(self) -> dict[str, int]:
        return {"sums": self.n_parts * self.tiles.n_slots}

    def _born(self) -> list[KeptLaunch]:
        spheres = self.spheres
        radii = self.of_atoms(
            "radii_of_sums", np.int32(self.n_parts), *self.solvent_constants(), self.buffers["sums"], spheres.rho,
            spheres.intrinsic, outputs=("inverses", "results"),
        )  # fmt: skip
        return [*(self._blocks() if self.layout.blocks else self._rows()), radii]

    def _rows(self) -> Sequence[KeptLaunch]:
        """Each atom by itself."""
        layout, spheres, n_tiles = self.layout, self.spheres, len(self.tiles)
        n_chunks, tiles_per_chunk = layout.chunks(n_tiles)
        columns = self.named("x", "y", "z") if layout.width > 1 else []
        dispatch = self.run.upload(born_dispatch(self.tiles, layout.row, tiles_per_chunk), np.int32)
        return [
            self.run.keep(
                "solvent/tiled.cl", "born_sums", (layout.rows(n_tiles), n_chunks * layout.split),
                (layout.tile // layout.width, layout.split),
                np.int32(n_tiles), np.int32(n_tiles), np.int32(tiles_per_chunk), *self.reaches,
                self.buffers["spheres"], *columns, spheres.rho, *self.named("series", "origins", "extents"),
                spheres.counts, self.buffers["sums"], dispatch, width=layout.width, pairs=self.pairs, TILE=layout.tile,
                ROW=layout.row, SHARES=layout.split,
                **self.integral_macros,
            )
        ]  # fmt: skip

    def _joined(self) -> list[KeptLaunch]:
        layout, spheres, n_tiles, run = self.layout, self.spheres, len(self.tiles), self.run
        is_small = 0 < self.most_joined and layout.vectors == layout.row == 1 and layout.shares == layout.split
        if not (layout.joined and is_small and run.device.kind == "GPU" and run.device.has_device_fence):
            return []
        n_chunks, tiles_per_chunk = layout.chunks(n_tiles)
        n_groups = -(-n_tiles // layout.split) + n_tiles * (n_chunks + -(-n_chunks // layout.split))
        most = min(self.batch, self.most_joined)
        return [
            run.keep(
                "solvent/joined.cl", "joined", (n_groups * layout.tile, layout.split), (layout.tile, layout.split),
                np.int32(n_tiles), np.int32(len(self.atoms)), run.dtype.type(self.encoding.step),
                self.encoding.origin_step, np.int32(tiles_per_chunk), *self.reaches, *self.solvent_constants(),
                *self.potential_model, self.buffers["positions"], spheres.order, spheres.counts, spheres.largest_s,
                spheres.scaled, spheres.charges, spheres.coefficients, spheres.rho, spheres.intrinsic,
                *self.named("spheres", "points", "x", "y", "z", "series", "origins", "extents", "sums", "inverses"),
                *self.named("potential", "results"), run.zeros(most * n_tiles, np.int32),
                run.zeros(most * COUNTERS, np.int32), TILE=layout.tile, ROW=1, SHARES=layout.split, VECTORS=1, FUSED=1,
                ENERGIES=1, SCREENED=int(self.model.kappa > 0), **self.encoding.macros, **self.integral_macros,
                **self.gb_macros,
            )
        ]  # fmt: skip

    def _blocks(self) -> Sequence[KeptLaunch]:
        """Both atoms of a pair at once, so many rows of tiles in each launch."""
        layout, spheres, n_tiles, n_parts = self.layout, self.spheres, len(self.tiles), self.n_parts
        rows = n_parts * max(1, int(LAUNCH_PAIRS / self.pairs * n_tiles / n_parts))
        bounds = [*range(0, n_tiles, rows), n_tiles]
        return [
            self.run.keep(
                "solvent/blocks.cl", "born_sums_blocks", (n_parts, 1), (1, 1), np.int32(n_tiles), np.int32(n_parts),
                np.int32(n_tiles), np.int32(first), np.int32(last), *self.reaches,
                *self.named("spheres", "x", "y", "z"),
                spheres.scaled, spheres.rho, self.buffers["series"], spheres.coefficient_columns,
                *self.named("origins", "extents"), spheres.counts, self.buffers["sums"], width=layout.width,
                pairs=self.pairs * (last - first) / n_tiles, divisible=0, TILE=layout.tile, **self.integral_macros,
            )
            for first, last in pairwise(bounds)
        ]  # fmt: skip
