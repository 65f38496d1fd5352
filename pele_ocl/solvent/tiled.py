"""HCT sums over tiles of sorted atoms: what the kernels of cl/solvent/tiled.cl and cl/solvent/blocks.cl are given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..atoms import Floats
from ..opencl.shared import READY_TERMS
from ..variant import PRECISIONS
from .layout import Layout

if TYPE_CHECKING:
    from ..opencl.kernels import Run
    from .places import Places

# Where the log-free series takes over, in scaled radii, and how many terms it needs there and farther out; what is left
# out: docs/theory/solvent.md, "Far pairs". Of pairs: FAR, and CLOSED where terms cost less than another closed form. Of
# whole tiles: FAR_A, FAR_B and FAR_C.
SERIES = {
    "float32": {"CLOSED": (3, 7), "FAR": (4, 5), "FAR_A": (5, 4), "FAR_B": (8, 3), "FAR_C": (20, 2)},
    "float64": {"CLOSED": (4, 10), "FAR": (4, 10), "FAR_A": (7, 7), "FAR_B": (12, 5), "FAR_C": (24, 4)},
}

# Pairs in one launch of blocks where more would keep a display waiting, or progress is asked for.
LAUNCH_PAIRS = 4e8


def series_macros(precision: str) -> dict[str, int]:
    """Distances and numbers of terms as the macros of the kernels."""
    assert precision in PRECISIONS
    macros = {}
    for distance, (scaled_radii, terms) in SERIES[precision].items():
        macros[distance] = scaled_radii
        macros[distance.replace("FAR", "TERMS") if "FAR" in distance else "CLOSED_TERMS"] = terms
    return macros


def series_coefficients(scaled: Floats) -> Floats:
    """k/(2k+1) s^(2k+1) for k = 1 to READY_TERMS, the coefficients of r^-(2k+2) in eq. 4; (READY_TERMS, n)."""
    k = np.arange(1, READY_TERMS + 1)[:, None]
    coefficients: Floats = k / (2 * k + 1) * scaled ** (2 * k + 1)
    return coefficients


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
