"""Layouts of the energy's passes on a device: pure functions of the machine and the number of atoms."""

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

# Of fewer atoms than this a GPU is filled by smaller shares of the work only, and launches are what costs.
SMALL = 2_000

# Of fewer atoms than this tiles of `blocks` are smaller: a tile with itself has each pair twice, which weighs there.
SMALLEST = 256

MOST_FUSED = 3_000  # atoms; in larger molecules `tune` does not try to fuse launches

# Atoms up to which `blocks` has more parts for each core of a CPU, which evens out their times. In larger molecules
# each part has many tiles.
MOST_HALVED = 8_192

# With at least so many cores such parts are runs of tiles, so many per core.
LEAST_CORES_FOR_RUNS, RUNS_FOR_EACH = 4, 8
LEAST_BLOCKS = 8  # of two tiles in such a part, on average

# Atoms in a tile of kernels that keep the excluded partners of an atom as the bits of one word: #error in their files.
MOST_TILE = 32

# Layers that `squares` keeps at most of what tiles get, for the gradient: where the steps around the ring are more
# they come in several launches, so that memory grows with the atoms and not with their square.
MOST_LAYERS = 256


@dataclass(frozen=True)
class EnergyLayout:
    """Shape of the passes over pairs.

    width : reals in a vector
    tile : atoms in a tile, a power of two, a multiple of width; at most MOST_TILE for `blocks` and `squares`

    Raises ValueError for a tile that the kernels do not know.
    """

    width: int
    tile: int
    most_tile: ClassVar[int | None] = None  # atoms; None where kernels know tiles of any size

    def __post_init__(self) -> None:
        if self.tile & (self.tile - 1) or self.tile % self.width:
            raise ValueError(f"a tile has {self.tile} atoms; a power of two and multiple of {self.width} is needed")
        if self.most_tile is not None and self.tile > self.most_tile:
            raise ValueError(f"a tile has {self.tile} atoms; {type(self).__name__} allows {self.most_tile} at most")


@dataclass(frozen=True)
class RowsLayout(EnergyLayout):
    """Shape of `rows`.

    parts_of_rows : parts of a group; each meets its share of the tiles; a power of two
    """

    parts_of_rows: int

    @classmethod
    def of(cls, machine: Machine, n_atoms: int) -> RowsLayout:
        """Choose the layout for a machine and a number of atoms."""
        if machine.kind == "CPU":
            # One work-item to a part: Intel's compiler mixes the lanes of several up where they differ in a condition.
            return cls(machine.width, max(4, machine.width), 1)
        return cls(1, 16, 32) if n_atoms < SMALL else cls(1, 32, 16)

    @staticmethod
    def choices(machine: Machine, n_atoms: int) -> Sequence[Settings]:
        """List the settings that `tune` tries on a GPU."""
        return [{"tile": tile, "parts_of_rows": parts} for tile, parts in ((16, 16), (16, 32), (32, 8), (32, 16))]


@dataclass(frozen=True)
class Runs:
    """Parts of passes over blocks that are runs of tiles for some steps around the ring; cl/common/runs.clh.

    per_run : tiles of a run; the last one may have fewer
    per_cut : steps of a part
    """

    per_run: int
    n_runs: int
    per_cut: int
    n_cuts: int

    @classmethod
    def of(cls, n_tiles: int, wanted: int) -> Runs:
        """Divide n_tiles into about `wanted` parts, or fewer so that none is tiny."""
        n_steps = n_tiles // 2 + 1
        wanted = max(1, min(wanted, n_tiles * n_steps // LEAST_BLOCKS))
        # A part has sums of 2 per_run + per_cut - 1 tiles, the fewest for its blocks where per_cut is 2 per_run.
        per_run = max(1, round(n_tiles / (2 * math.sqrt(wanted))))
        n_runs = -(-n_tiles // per_run)
        per_cut = -(-n_steps // min(n_steps, -(-wanted // n_runs)))
        return cls(per_run, n_runs, per_cut, -(-n_steps // per_cut))

    @property
    def n_parts(self) -> int:
        """Count the parts."""
        return self.n_runs * self.n_cuts

    @property
    def met(self) -> int:
        """Tiles that a part meets at most."""
        return self.per_run + self.per_cut - 1

    @property
    def tiles_of_sums(self) -> int:
        """Tiles of which a part has sums."""
        return self.met + self.per_run

    def places_of_sums(self, n_tiles: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """List where the sums of each tile are: the first of each, (n_tiles + 1,), and (n_sums, 2) part and place.

        Some sums are of nothing, and stay 0.
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
    """Shape of `blocks`.

    most_parts : the tiles are walked in at most this many parts; each takes memory
    in_runs : wanted number of parts that are runs of tiles; 0 where each part walks every n-th tile
    """

    most_tile = MOST_TILE
    most_parts: int
    in_runs: int = 0

    @classmethod
    def of(cls, machine: Machine, n_atoms: int) -> BlocksLayout:
        """Choose the layout for a machine and a number of atoms."""
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
        """List the settings that `tune` tries on a CPU; where parts are runs, `most_parts` has no effect."""
        tiles = [tile for tile in (16, 32) if tile >= machine.width]
        if BlocksLayout.of(machine, n_atoms).in_runs:
            return [{"tile": tile} for tile in tiles]
        return [{"tile": tile, "most_parts": parts} for tile, parts in product(tiles, tried_parts(machine.units))]

    def parts(self, n_tiles: int) -> int:
        """Count the parts of the tiles: all but the last get equally many."""
        return -(-n_tiles // max(2, -(-n_tiles // self.most_parts)))


@dataclass(frozen=True)
class Slab:
    """Steps around the ring of `squares` that one launch takes, and their chunks; cl/energy/squares/ring.clh."""

    first_step: int
    end_step: int
    steps_per_chunk: int
    first_chunk: int
    all_chunks: int

    @property
    def steps(self) -> range:
        """Steps."""
        return range(self.first_step, self.end_step)

    @property
    def n_chunks(self) -> int:
        """A chunk of steps is a group's work."""
        return -(-(self.end_step - self.first_step) // self.steps_per_chunk)

    @property
    def n_layers(self) -> int:
        """Layers: one of each chunk, and one of each step except a row's own."""
        return self.n_chunks + self.end_step - max(self.first_step, 1)


@dataclass(frozen=True)
class SquaresLayout(EnergyLayout):
    """Shape of `squares`.

    most_parts : the Born sums walk the tiles in at most this many parts; each takes memory; the steps around the ring
        are worth several tiles each and come in about a quarter as many chunks
    row : tiles in a row; a work-item owns an atom of each
    split : work-items to an atom, which divide the atoms of a tile
    shares : work-items that add up the parts of one atom
    fused : whether the last group of a launch to write to a tile sums over all, where a device allows that
    joined : whether all launches are one, where they are fused
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
        """Choose the layout for a machine and a number of atoms."""
        if n_atoms < SMALL and machine.kind == "GPU":
            return cls(1, 32, 256, split=2, shares=4, fused=True, joined=True)
        row, shares = (3, 4) if n_atoms > 8_000 else (1, 8)
        return cls(1, 32, 256, row=row, shares=shares)

    @staticmethod
    def choices(machine: Machine, n_atoms: int) -> Sequence[Settings]:
        """List the settings that `tune` tries on a GPU."""
        shapes = product((1, 2, 3), (128, 256))
        squares = [{"row": row, "most_parts": parts, "split": 1, "fused": 0, "joined": 0} for row, parts in shapes]
        fused = [
            {"row": 1, "most_parts": 256, "split": split, "fused": 1, "joined": joined}
            for split, joined in product((1, 2, 4), (0, 1))
        ]
        return squares + (fused if n_atoms <= MOST_FUSED else [])

    def chunks(self, n_tiles: int) -> tuple[int, int]:
        """Count the chunks of tiles that the Born sums walk, and the tiles in each."""
        tiles_per_chunk = -(-n_tiles // self.most_parts)
        return -(-n_tiles // tiles_per_chunk), tiles_per_chunk

    def rows(self, n_tiles: int) -> int:
        """Count the rows of tiles."""
        return -(-n_tiles // self.row)

    def slabs(self, n_tiles: int, most_layers: int) -> list[Slab]:
        """Cut a pass into launches; each keeps so many layers at most, but at least two."""
        n_steps = self.rows(n_tiles) // 2 + 1
        per_chunk = max(1, min(round(n_steps * 4 / self.most_parts), most_layers - 1))
        per_slab = per_chunk * max(1, most_layers // (per_chunk + 1))
        all_chunks = -(-n_steps // per_chunk)
        return [
            Slab(first, min(first + per_slab, n_steps), per_chunk, first // per_chunk, all_chunks)
            for first in range(0, n_steps, per_slab)
        ]
