"""Layouts of the tiled kernels on a device: pure functions of the device and the number of atoms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

from ..common.variant import Machine, Settings
from ..tiles import Tiles, cpu_parts, tried_parts
from .tree_sums import walks_of

SMALL = 2_000  # atoms; of fewer, launches are what costs a GPU
TREE_TILE = 64  # atoms that walk a tree together on a CPU


@dataclass(frozen=True)
class SolventLayout:
    """Shape of the tiled kernels.

    width : reals in a vector
    vectors : vectors of atoms a work-item of the GB sums owns
    tile : atoms in a tile, a multiple of width * vectors
    group : work-group size in the two dimensions (work-items along atoms, chunks of tiles)
    most_chunks : the tiles are walked in at most this many chunks at a time; more of them fill large devices and
        shorten the float32 sums, but each costs memory
    blocks : whether Born sums are taken for both tiles of a block at once, which suits the few work-items of CPUs
    row : tiles; a work-item of the Born sums owns a vector of each
    shares : work-items that add up the parts of one atom
    split : work-items to an atom in the Born sums, which divide the atoms of a tile
    joined : whether all launches are one, where a device allows that
    walks : of a tile through parts of the tree, at most; own : tiles that a group walks with (GPUs)
    """

    width: int
    vectors: int
    tile: int
    group: tuple[int, int]
    most_chunks: int
    blocks: bool = False
    row: int = 1
    shares: int = 1
    split: int = 1
    joined: bool = False
    walks: int = 4
    own: int = 1

    @classmethod
    def of(cls, kind: str, width: int, n_atoms: int, units: int = 1) -> SolventLayout:
        """Choose the layout for a device of this kind ("GPU", "CPU") and units, whose vectors hold `width` reals."""
        if kind == "CPU":
            return cls(width, max(1, min(4, 32 // width)), 32, (1, 1), cpu_parts(units), blocks=True)
        # Atoms of one work-item share loads, but there are fewer work-items, which small molecules cannot spare.
        walks = walks_of(n_atoms)
        if n_atoms < SMALL and kind == "GPU":
            return cls(1, 1, 32, (64, 1), 256, shares=2, split=2, joined=True, walks=walks)
        vectors, row = (2, 3) if n_atoms >= 8192 else (1, 1)
        return cls(1, vectors, 32, (64, 1), 256 if n_atoms < 100_000 else 32, row=row, shares=4, walks=walks)

    def for_tree(self) -> SolventLayout:
        """Return the layout for a tree traversal, which on CPUs handles more atoms at a time."""
        return replace(self, tile=TREE_TILE) if self.blocks else self

    @staticmethod
    def choices(machine: Machine, n_atoms: int) -> Sequence[Settings]:
        """List the settings that `tune` tries on a machine."""
        if machine.kind == "CPU":
            return [
                {"tile": tile, "vectors": max(1, min(4, tile // machine.width)), "most_chunks": chunks}
                for tile, chunks in product((16, 32, 64), tried_parts(machine.units))
                if tile >= machine.width
            ]
        return [
            {"tile": tile, "vectors": min(row, 2), "row": row, "most_chunks": chunks, "split": 1, "joined": 0}
            for tile, row, chunks in product((32, 64), (1, 2, 3), (128, 256))
        ]

    def chunks(self, n_tiles: int) -> tuple[int, int]:
        """Count the chunks, and the tiles in each."""
        tiles_per_chunk = -(-n_tiles // self.most_chunks)
        return -(-n_tiles // tiles_per_chunk), tiles_per_chunk

    def parts(self, n_tiles: int) -> int:
        """Count the parts that blocks of two tiles are divided into: all but the last get equally many tiles."""
        return -(-n_tiles // max(2, -(-n_tiles // self.most_chunks)))

    def shape(self, tiles: Tiles, n_chunks: int) -> tuple[int, int]:
        """Work-items of the GB sums in the two dimensions."""
        return tiles.n_slots // (self.width * self.vectors), n_chunks

    def rows(self, n_tiles: int) -> int:
        """Work-items of the Born sums in the first dimension."""
        return -(-n_tiles // self.row) * (self.tile // self.width)
