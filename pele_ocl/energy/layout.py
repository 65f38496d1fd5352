"""How the passes of the energy are laid out on a device: pure functions of what it is and how many atoms there are."""

from __future__ import annotations

from dataclasses import dataclass

from ..tiles import cpu_parts

# Bytes that one batch of conformations may take on a device, unless one alone takes more.
BATCH_BYTES = 1 << 30


# Work-items of a group in `squares`: what one processor of NVIDIA's GPUs runs in step.
LANES = 32


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
    def of(cls, variant: str, kind: str, width: int, n_atoms: int, units: int = 1) -> Layout:
        """The layout of a variant for a device of this kind and units, whose vectors hold `width` reals."""
        if kind == "CPU" and variant != "squares":
            # A tile with itself has each pair twice, which weighs in small molecules.
            return cls(width, 16 if n_atoms < 256 and width <= 8 else 32, 1, cpu_parts(units))
        tile = 32 if variant == "blocks" else 64
        return cls(1, tile, 64, 64 if n_atoms < 100_000 else 32)

    def chunks(self, n_tiles: int) -> tuple[int, int]:
        """How many chunks of tiles `rows` walks, and how many tiles in each."""
        tiles_per_chunk = -(-n_tiles // self.most_parts)
        return -(-n_tiles // tiles_per_chunk), tiles_per_chunk

    def parts(self, n_tiles: int) -> int:
        """Into how many parts `blocks` shares its tiles out: so that all but the last get equally many."""
        return -(-n_tiles // max(2, -(-n_tiles // self.most_parts)))

    def step_chunks(self, n_tiles: int) -> tuple[int, int]:
        """How many chunks of steps around the ring `squares` walks, and how many steps in each."""
        n_steps = n_tiles // 2 + 1
        steps_per_chunk = -(-n_steps * 4 // self.most_parts)
        return -(-n_steps // steps_per_chunk), steps_per_chunk

    def batch(self, bytes_each: int) -> int:
        """How many conformations, of so many bytes each, are computed at a time."""
        return max(1, BATCH_BYTES // bytes_each)
