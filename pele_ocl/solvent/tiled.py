"""HCT sums over tiles of sorted atoms: what the kernels of cl/solvent/tiled.cl and cl/solvent/blocks.cl are given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..tiled.series import series_macros
from .layout import Layout

if TYPE_CHECKING:
    from ..opencl.kernels import Run
    from .places import Places

# Pairs in one launch of blocks where more would keep a display waiting, or progress is asked for.
LAUNCH_PAIRS = 4e8


def launch_rows(
    run: Run, layout: Layout, n_tiles: int, pairs: float, largest_rho: float, places: Places, sums: Any
) -> None:
    """Each atom by itself. sums : (n_chunks, n_places)"""
    n_chunks, tiles_per_chunk = layout.chunks(n_tiles)
    kernel = run.kernel(
        "solvent/tiled.cl", "born_sums", layout.width, TILE=layout.tile, ROW=layout.row, FUSED=0,
        **series_macros(run.precision),
    )  # fmt: skip
    run.launch_rows(
        kernel, (layout.rows(n_tiles), n_chunks), (layout.tile // layout.width, 1), pairs,
        np.int32(n_tiles), np.int32(tiles_per_chunk), run.dtype.type(largest_rho),
        places.spheres, *places.axes, places.rho, places.series, *places.boxes, sums,
    )  # fmt: skip


def launch_blocks(
    run: Run, layout: Layout, n_tiles: int, pairs: float, largest_rho: float, places: Places, sums: Any
) -> None:
    """Both atoms of a pair at once. sums : (n_parts, n_places)"""
    n_parts = layout.parts(n_tiles)
    kernel = run.kernel(
        "solvent/blocks.cl", "born_sums_blocks", layout.width, TILE=layout.tile, **series_macros(run.precision)
    )
    rows = n_tiles
    if run.progress is not None or pairs > LAUNCH_PAIRS:
        rows = n_parts * max(1, int(LAUNCH_PAIRS / pairs * n_tiles / n_parts))
    for first in range(0, n_tiles, rows):
        last = min(first + rows, n_tiles)
        run.launch(
            kernel, (n_parts,), (1,), np.int32(n_tiles), np.int32(n_parts), np.int32(first), np.int32(last),
            run.dtype.type(largest_rho), places.spheres, *places.axes, places.scaled, places.rho, places.series,
            places.columns, *places.boxes, sums,
        )  # fmt: skip
        if run.progress is not None:
            run.device.queue.finish()
            run.progress(last / n_tiles)
