"""How the passes of the energy are laid out on a device: pure functions of what it is and how many atoms there are."""

from __future__ import annotations

from dataclasses import dataclass

from ..tiles import cpu_parts

# Bytes that one batch of conformations may take on a device, unless one alone takes more.
BATCH_BYTES = 1 << 30

# Conformations in one launch, of which each is a layer of groups in the third dimension: CUDA's devices take so many.
MOST_CONFORMATIONS = 65_535

# Of fewer atoms than this a GPU is filled by smaller tiles only.
SMALL = 2_000


@dataclass(frozen=True)
class Layout:
    """Shape of the passes over pairs.

    width : reals in a vector
    tile : atoms in a tile, a power of two, a multiple of width
    parts_of_rows : parts of a group in `rows`, each of which meets its share of the tiles; a power of two
    row : tiles in a row of `squares`, of which a work-item owns an atom each
    shares : work-items that add up the parts of one atom in `squares`
    most_parts : `blocks` and `squares` walk the tiles in at most this many parts; each takes memory
    """

    width: int
    tile: int
    parts_of_rows: int
    most_parts: int
    row: int = 1
    shares: int = 1

    @classmethod
    def of(cls, variant: str, kind: str, width: int, n_atoms: int, units: int = 1) -> Layout:
        """The layout of a variant for a device of this kind and units, whose vectors hold `width` reals."""
        if kind == "CPU" and variant != "squares":
            # A tile with itself has each pair twice, which weighs in small molecules.
            return cls(width, 16 if n_atoms < 256 and width <= 8 else 32, 1, cpu_parts(units))
        if variant == "rows":
            return cls(1, 16, 32, 1) if n_atoms < SMALL else cls(1, 32, 16, 1)
        if variant == "blocks":
            return cls(1, 32, 1, 64)
        return cls(1, 32, 1, 256, row=3 if n_atoms > 8_000 else 1, shares=4)

    def sums(self, variant: str, n_tiles: int) -> tuple[int, int]:
        """In how many parts the Born sums and those over pairs come; `rows` keeps no Born sums."""
        if variant == "rows":
            return 0, 1
        if variant == "blocks":
            return self.parts(n_tiles), self.parts(n_tiles)
        return self.chunks(n_tiles)[0], self.step_chunks(n_tiles)[0]

    def chunks(self, n_tiles: int) -> tuple[int, int]:
        """How many chunks of tiles the Born sums of `squares` walk, and how many tiles in each."""
        tiles_per_chunk = -(-n_tiles // self.most_parts)
        return -(-n_tiles // tiles_per_chunk), tiles_per_chunk

    def parts(self, n_tiles: int) -> int:
        """Into how many parts `blocks` shares its tiles out: so that all but the last get equally many."""
        return -(-n_tiles // max(2, -(-n_tiles // self.most_parts)))

    def rows(self, n_tiles: int) -> int:
        """How many rows of tiles."""
        return -(-n_tiles // self.row)

    def recoil(self, n_tiles: int) -> int:
        """Reals that `squares` keeps of what each tile gets of others, for the gradient of one conformation."""
        return 4 * (self.rows(n_tiles) // 2) * n_tiles * self.tile

    def step_chunks(self, n_tiles: int) -> tuple[int, int]:
        """How many chunks of steps around the ring `squares` walks, and how many steps in each."""
        n_steps = self.rows(n_tiles) // 2 + 1
        steps_per_chunk = -(-n_steps * 4 // self.most_parts)
        return -(-n_steps // steps_per_chunk), steps_per_chunk

    def batch(self, bytes_each: int) -> int:
        """How many conformations, of so many bytes each, are computed at a time."""
        return min(MOST_CONFORMATIONS, max(1, BATCH_BYTES // bytes_each))
