"""Layouts of the tiled kernels on a device, as functions of the device and the number of atoms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

from ..common.variant import Machine, Settings
from ..tiles import Tiles, cpu_parts, tried_parts
from .tree_sums import walks_of

SMALL = 2_000  # atoms; with fewer, launches dominate the time on a GPU
TREE_TILE = 64  # atoms that traverse a tree together on a CPU


@dataclass(frozen=True)
class SolventLayout:
    """Layout of the tiled kernels.

    width : reals in a vector
    vectors : vectors of atoms per work-item in the GB sums
    tile : atoms in a tile, a multiple of width * vectors
    group : work-group size in the two dimensions (work-items along atoms, chunks of tiles)
    most_chunks : largest number of chunks of tiles; more chunks fill large devices and shorten the float32 sums, but
        each costs memory
    blocks : whether Born sums are computed for both tiles of a block together, which suits CPUs with few work-items
    row : tiles per row; a work-item of the Born sums has a vector of each
    shares : work-items that sum the parts of one atom
    split : work-items per atom in the Born sums, which divide the atoms of a tile
    joined : whether all launches are joined in one, on devices that support it
    walks : largest number of traversals per tile, each of a part of the tree; own : tiles that a group traverses with
        (GPUs)
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
        """Return the layout for a device of a kind ("GPU", "CPU") with `units` and vectors of `width` reals."""
        if kind == "CPU":
            return cls(width, max(1, min(4, 32 // width)), 32, (1, 1), cpu_parts(units), blocks=True)
        # Atoms of one work-item share loads, but there are fewer work-items, too few for small molecules.
        walks = walks_of(n_atoms)
        if n_atoms < SMALL and kind == "GPU":
            return cls(1, 1, 32, (64, 1), 256, shares=2, split=2, joined=True, walks=walks)
        vectors, row = (2, 3) if n_atoms >= 8192 else (1, 1)
        return cls(1, vectors, 32, (64, 1), 256 if n_atoms < 100_000 else 32, row=row, shares=4, walks=walks)

    def for_tree(self) -> SolventLayout:
        return replace(self, tile=TREE_TILE) if self.blocks else self

    @staticmethod
    def choices(machine: Machine, n_atoms: int) -> Sequence[Settings]:
        """Settings that `tune` tries on a machine."""
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
        """Number of chunks, and of tiles per chunk."""
        tiles_per_chunk = -(-n_tiles // self.most_chunks)
        return -(-n_tiles // tiles_per_chunk), tiles_per_chunk

    def parts(self, n_tiles: int) -> int:
        """Number of parts of blocks of two tiles; all but the last have the same number of tiles."""
        return -(-n_tiles // max(2, -(-n_tiles // self.most_chunks)))

    def shape(self, tiles: Tiles, n_chunks: int) -> tuple[int, int]:
        """Number of work-items of the GB sums in the two dimensions."""
        return tiles.n_slots // (self.width * self.vectors), n_chunks

    def rows(self, n_tiles: int) -> int:
        """Number of work-items of the Born sums in the first dimension."""
        return -(-n_tiles // self.row) * (self.tile // self.width)
