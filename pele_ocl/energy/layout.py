"""How the passes of the energy are laid out on a device: pure functions of what it is and how many atoms there are."""

from __future__ import annotations

from dataclasses import dataclass

# Bytes that one batch of conformations may take on a device, unless one alone takes more.
BATCH_BYTES = 1 << 30


@dataclass(frozen=True)
class Layout:
    """Shape of the passes over pairs.

    width : reals in a vector
    tile : atoms in a tile, a power of two, a multiple of width
    group : work-items of a group in `rows`
    most_parts : the tiles are walked in at most this many parts; each takes memory
    """

    width: int
    tile: int
    group: int
    most_parts: int

    @classmethod
    def of(cls, kind: str, width: int, n_atoms: int) -> Layout:
        """The layout for a device of this kind ("GPU", "CPU", ...) whose vectors hold `width` reals."""
        if kind == "CPU":
            return cls(width, 32, 1, 16)
        return cls(1, 64, 64, 64 if n_atoms < 100_000 else 32)

    def chunks(self, n_tiles: int) -> tuple[int, int]:
        """How many chunks of tiles `rows` walks, and how many tiles in each."""
        tiles_per_chunk = -(-n_tiles // self.most_parts)
        return -(-n_tiles // tiles_per_chunk), tiles_per_chunk

    def parts(self, n_tiles: int) -> int:
        """Into how many parts `blocks` shares its tiles out."""
        return min(self.most_parts, -(-n_tiles // 2))

    def batch(self, n_places: int, n_parts: int, real_bytes: int) -> int:
        """How many conformations are computed at a time."""
        return max(1, BATCH_BYTES // (n_places * real_bytes * (8 * n_parts + 40)))
