"""Layouts of the energy's passes on a device, as functions of the machine and the number of atoms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ..common.variant import Machine, Settings
from ..tiles import cpu_parts, tried_parts

# In molecules with fewer atoms a GPU is filled only by dividing the work finely, and launches dominate the time.
SMALL = 2_000

# With fewer atoms `blocks` uses smaller tiles: the block of a tile with itself computes each pair twice.
SMALLEST = 256

MOST_FUSED = 3_000  # atoms; for larger molecules `tune` does not try fused launches

# Largest number of atoms for which `blocks` has more parts per core of a CPU, which balances the load. In larger
# molecules each part has many tiles.
MOST_HALVED = 8_192

# Smallest number of cores for which parts are runs of tiles, and number of parts per core.
LEAST_CORES_FOR_RUNS, RUNS_FOR_EACH = 4, 8
LEAST_BLOCKS = 8  # blocks of two tiles per part, on average

# Largest tile of kernels that store the exclusions of an atom as bits of one word; checked by #error in their files.
MOST_TILE = 32

# Largest number of layers of partial gradients that `squares` keeps. If there are more steps around the ring, they are
# divided into several launches, so that memory is linear in the number of atoms.
MOST_LAYERS = 256


@dataclass(frozen=True)
class EnergyLayout:
    """Layout of the passes over pairs. Raises ValueError for a tile that the kernels do not support.

    width : reals in a vector
    tile : atoms in a tile, a power of two and a multiple of width; at most MOST_TILE for `blocks` and `squares`
    """

    width: int
    tile: int
    most_tile: ClassVar[int | None] = None  # atoms; None if kernels support tiles of any size

    def __post_init__(self) -> None:
        if self.tile & (self.tile - 1) or self.tile % self.width:
            raise ValueError(f"a tile has {self.tile} atoms; expected a power of two and multiple of {self.width}")
        if self.most_tile is not None and self.tile > self.most_tile:
            raise ValueError(f"a tile has {self.tile} atoms; {type(self).__name__} allows {self.most_tile} at most")


@dataclass(frozen=True)
class RowsLayout(EnergyLayout):
    """Layout of `rows`. parts_of_rows : parts of a group, which divide the tiles among them; a power of two"""

    parts_of_rows: int

    @classmethod
    def of(cls, machine: Machine, n_atoms: int) -> RowsLayout:
        if machine.kind == "CPU":
            # One work-item per part: Intel's compiler miscompiles conditions that differ between work-items.
            return cls(machine.width, max(4, machine.width), 1)
        return cls(1, 16, 32) if n_atoms < SMALL else cls(1, 32, 16)

    @staticmethod
    def choices(machine: Machine, n_atoms: int) -> Sequence[Settings]:
        """Settings that `tune` tries on a GPU."""
        return [{"tile": tile, "parts_of_rows": parts} for tile, parts in ((16, 16), (16, 32), (32, 8), (32, 16))]


@dataclass(frozen=True)
class Runs:
    """Division of passes over blocks into runs of tiles and ranges of steps around the ring; cl/common/runs.clh.

    per_run : tiles per run; the last one may have fewer
    per_cut : steps per part
    """

    per_run: int
    n_runs: int
    per_cut: int
    n_cuts: int

    @classmethod
    def of(cls, n_tiles: int, wanted: int) -> Runs:
        """Divide n_tiles into about `wanted` parts, or fewer if parts would be too small."""
        n_steps = n_tiles // 2 + 1
        wanted = max(1, min(wanted, n_tiles * n_steps // LEAST_BLOCKS))
        # A part has sums for 2 per_run + per_cut - 1 tiles; their number per block is smallest for per_cut = 2 per_run.
        per_run = max(1, round(n_tiles / (2 * math.sqrt(wanted))))
        n_runs = -(-n_tiles // per_run)
        per_cut = -(-n_steps // min(n_steps, -(-wanted // n_runs)))
        return cls(per_run, n_runs, per_cut, -(-n_steps // per_cut))

    @property
    def n_parts(self) -> int:
        return self.n_runs * self.n_cuts

    @property
    def met(self) -> int:
        """Number of tiles with which a part's run interacts, at most."""
        return self.per_run + self.per_cut - 1

    @property
    def tiles_of_sums(self) -> int:
        """Number of tiles for which a part has sums."""
        return self.met + self.per_run

    def places_of_sums(self, n_tiles: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return where the sums of each tile begin, (n_tiles + 1,), and the part and position of sums, (n_sums, 2).

        Unused sums stay 0.
        """
        tile, run, cut = np.indices((n_tiles, self.n_runs, self.n_cuts)).reshape(3, -1)
        ahead = (tile - run * self.per_run) % n_tiles  # of the run's first tile
        met = ahead - cut * self.per_cut
        is_met = (met >= 0) & (met < self.met) & (ahead < self.per_run + n_tiles // 2)
        is_of_run, part = ahead < self.per_run, cut * self.n_runs + run
        rows = np.concatenate(
            [
                np.column_stack([tile, part, place])[here]
                for here, place in ((is_met, met), (is_of_run, self.met + ahead))
            ]
        )
        rows = rows[np.lexsort(rows.T[::-1])]
        return np.searchsorted(rows[:, 0], np.arange(n_tiles + 1)), rows[:, 1:]


@dataclass(frozen=True)
class BlocksLayout(EnergyLayout):
    """Layout of `blocks`.

    most_parts : largest number of parts that divide the tiles; each takes memory
    in_runs : requested number of parts that are runs of tiles; 0 if each part visits every n-th tile
    """

    most_tile = MOST_TILE
    most_parts: int
    in_runs: int = 0

    @classmethod
    def of(cls, machine: Machine, n_atoms: int) -> BlocksLayout:
        if machine.kind == "CPU":
            tile = 16 if n_atoms < SMALLEST and machine.width <= 8 else 32
            parts, units = cpu_parts(machine.units), machine.units
            if n_atoms > MOST_HALVED:
                return cls(machine.width, tile, parts)
            in_runs = RUNS_FOR_EACH * units if units >= LEAST_CORES_FOR_RUNS else 0
            return cls(machine.width, tile, max(parts, 2 * units), in_runs)
        return cls(1, 32, 64)

    @staticmethod
    def choices(machine: Machine, n_atoms: int) -> Sequence[Settings]:
        """Settings that `tune` tries on a CPU, without `most_parts` if parts are runs, where it has no effect."""
        tiles = [tile for tile in (16, 32) if tile >= machine.width]
        if BlocksLayout.of(machine, n_atoms).in_runs:
            return [{"tile": tile} for tile in tiles]
        return [{"tile": tile, "most_parts": parts} for tile, parts in product(tiles, tried_parts(machine.units))]

    def parts(self, n_tiles: int) -> int:
        """Number of parts; all but the last have the same number of tiles."""
        return -(-n_tiles // max(2, -(-n_tiles // self.most_parts)))


@dataclass(frozen=True)
class Slab:
    """Steps around the ring of `squares` in one launch, divided into chunks; cl/energy/squares/ring.clh."""

    first_step: int
    end_step: int
    steps_per_chunk: int
    first_chunk: int
    all_chunks: int

    @property
    def steps(self) -> range:
        return range(self.first_step, self.end_step)

    @property
    def n_chunks(self) -> int:
        """Number of chunks, each the work of one group."""
        return -(-(self.end_step - self.first_step) // self.steps_per_chunk)

    @property
    def n_layers(self) -> int:
        """Number of layers: one per chunk and one per step, except that of a row with itself."""
        return self.n_chunks + self.end_step - max(self.first_step, 1)


@dataclass(frozen=True)
class SquaresLayout(EnergyLayout):
    """Layout of `squares`.

    most_parts : largest number of parts into which Born sums divide the tiles; each takes memory. The steps around the
        ring, which cover several tiles each, are divided into about a quarter as many chunks
    row : tiles in a row; each work-item has one atom of each
    split : work-items per atom, which divide the atoms of a tile
    shares : work-items that add the parts of one atom
    fused : whether the last group to write to a tile sums its parts, on devices that support this
    joined : whether fused launches are joined in one
    """

    most_tile = MOST_TILE
    most_parts: int
    row: int = 1
    split: int = 1
    shares: int = 1
    fused: bool = False
    joined: bool = False

    @classmethod
    def of(cls, machine: Machine, n_atoms: int) -> SquaresLayout:
        if n_atoms < SMALL and machine.kind == "GPU":
            return cls(1, 32, 256, split=2, shares=4, fused=True, joined=True)
        row, shares = (3, 4) if n_atoms > 8_000 else (1, 8)
        return cls(1, 32, 256, row=row, shares=shares)

    @staticmethod
    def choices(machine: Machine, n_atoms: int) -> Sequence[Settings]:
        shapes = product((1, 2, 3), (128, 256))
        squares = [{"row": row, "most_parts": parts, "split": 1, "fused": 0, "joined": 0} for row, parts in shapes]
        fused = [
            {"row": 1, "most_parts": 256, "split": split, "fused": 1, "joined": joined}
            for split, joined in product((1, 2, 4), (0, 1))
        ]
        return squares + (fused if n_atoms <= MOST_FUSED else [])

    def chunks(self, n_tiles: int) -> tuple[int, int]:
        """Number of chunks of the Born sums, and of tiles per chunk."""
        tiles_per_chunk = -(-n_tiles // self.most_parts)
        return -(-n_tiles // tiles_per_chunk), tiles_per_chunk

    def rows(self, n_tiles: int) -> int:
        return -(-n_tiles // self.row)

    def slabs(self, n_tiles: int, most_layers: int) -> list[Slab]:
        """Divide a pass into launches with at most `most_layers` layers each, but at least two."""
        n_steps = self.rows(n_tiles) // 2 + 1
        per_chunk = max(1, min(round(n_steps * 4 / self.most_parts), most_layers - 1))
        per_slab = per_chunk * max(1, most_layers // (per_chunk + 1))
        all_chunks = -(-n_steps // per_chunk)
        return [
            Slab(first, min(first + per_slab, n_steps), per_chunk, first // per_chunk, all_chunks)
            for first in range(0, n_steps, per_slab)
        ]
