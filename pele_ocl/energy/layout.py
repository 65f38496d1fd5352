"""How the passes of the energy are laid out on a device: pure functions of what it is and how many atoms there are."""

from __future__ import annotations

from dataclasses import dataclass

from ..tiles import cpu_parts

# Bytes that one batch of conformations may take on a device, unless one alone takes more.
BATCH_BYTES = 1 << 30

# Conformations in one launch, of which each is a layer of groups in the third dimension: CUDA's devices take so many.
MOST_CONFORMATIONS = 65_535

# Of fewer atoms than this a GPU is filled by smaller shares of the work only, and launches are what costs.
SMALL = 2_000

# Layers that `squares` keeps at most of what tiles get, for the gradient: where the steps around the ring are more
# they come in several launches, so that memory grows with the atoms and not with their square.
MOST_LAYERS = 256


@dataclass(frozen=True)
class Slab:
    """Steps around the ring of `squares` that one launch takes, and their chunks; cl/energy/squares.clh."""

    first_step: int
    end_step: int
    steps_per_chunk: int
    first_chunk: int
    all_chunks: int

    @property
    def n_chunks(self) -> int:
        """A chunk of steps is a group's work."""
        return -(-(self.end_step - self.first_step) // self.steps_per_chunk)

    @property
    def n_layers(self) -> int:
        """One of each chunk, and one of each step but that of a row with itself."""
        return self.n_chunks + self.end_step - max(self.first_step, 1)


@dataclass(frozen=True)
class Layout:
    """Shape of the passes over pairs.

    width : reals in a vector
    tile : atoms in a tile, a power of two, a multiple of width
    parts_of_rows : parts of a group in `rows`, each of which meets its share of the tiles; a power of two
    row : tiles in a row of `squares`, of which a work-item owns an atom each
    split : work-items to an atom in `squares`, which divide the atoms of a tile
    shares : work-items that add up the parts of one atom in `squares`
    fused : whether in `squares` the last group of a launch to write to a tile adds up, where a device allows that
    most_parts : `blocks` and the Born sums of `squares` walk the tiles in at most this many parts, each of which takes
        memory; the steps around the ring, of which one is worth several tiles, in a quarter as many chunks
    """

    width: int
    tile: int
    parts_of_rows: int
    most_parts: int
    row: int = 1
    split: int = 1
    shares: int = 1
    fused: bool = False

    @classmethod
    def of(cls, variant: str, kind: str, width: int, n_atoms: int, units: int = 1) -> Layout:
        """The layout of a variant for a device of this kind and units, whose vectors hold `width` reals."""
        if kind == "CPU" and variant == "rows":
            # One work-item to a part: Intel's compiler mixes the lanes of several up where they differ in a condition.
            return cls(width, max(4, width), 1, 1)
        if kind == "CPU" and variant == "blocks":
            # A tile with itself has each pair twice, which weighs in small molecules.
            return cls(width, 16 if n_atoms < 256 and width <= 8 else 32, 1, cpu_parts(units))
        if variant == "rows":
            return cls(1, 16, 32, 1) if n_atoms < SMALL else cls(1, 32, 16, 1)
        if variant == "blocks":
            return cls(1, 32, 1, 64)
        if n_atoms < SMALL and kind == "GPU":
            return cls(1, 32, 1, 256, split=2, shares=4, fused=True)
        return cls(1, 32, 1, 256, row=3 if n_atoms > 8_000 else 1, shares=4)

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

    def slabs(self, n_tiles: int, most_layers: int) -> list[Slab]:
        """The launches of a pass of `squares`, of which each keeps so many layers at most, but at least two."""
        n_steps = self.rows(n_tiles) // 2 + 1
        per_chunk = max(1, min(-(-n_steps * 4 // self.most_parts), most_layers - 1))
        per_slab = per_chunk * max(1, most_layers // (per_chunk + 1))
        all_chunks = -(-n_steps // per_chunk)
        return [
            Slab(first, min(first + per_slab, n_steps), per_chunk, first // per_chunk, all_chunks)
            for first in range(0, n_steps, per_slab)
        ]

    def batch(self, bytes_each: int) -> int:
        """How many conformations, of so many bytes each, are computed at a time."""
        return min(MOST_CONFORMATIONS, max(1, BATCH_BYTES // bytes_each))
