"""Sizes of the tiles of `nonbond`."""

from __future__ import annotations

TILE = 8  # atoms, or a vector's lanes where these are fewer; wider vectors hold a tile several times
ENTRIES = 4  # computed side by side


def tile_constants(width: int) -> dict[str, int]:
    """Build definitions of the kernels that know tiles, for vectors of so many reals."""
    return {"ENTRIES": ENTRIES, "TILE": min(TILE, width)}
