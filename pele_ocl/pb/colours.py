"""Red-black ordering of grid nodes, as in cl/pb/nodes.clh."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

LANES = 16  # array sizes are padded to a multiple of this


@dataclass(frozen=True)
class Colours:
    """Grid of (nx, ny, nz) nodes in red-black order: arrays contain all red nodes, then all black nodes.

    first : index of the first node in arrays of several grids
    stride : distance between the arrays of successive rows, if several problems are solved together
    """

    shape: tuple[int, int, int]
    first: int = 0
    stride: int = 0

    @property
    def row(self) -> int:
        """Number of nodes of one colour along x, including padding."""
        return (self.shape[0] + 1) // 2

    @property
    def half(self) -> int:
        """Number of nodes of one colour, including padding."""
        return self.row * self.shape[1] * self.shape[2]

    @property
    def size(self) -> int:
        """Size of an array, including padding."""
        return -(-2 * self.half // LANES) * LANES

    @property
    def fields(self) -> dict[str, int]:
        """Members of the struct ColourGrid."""
        nx, ny, nz = self.shape
        return {"nx": nx, "ny": ny, "nz": nz, "row": self.row, "first": self.first, "stride": self.stride}

    def _odd_rows(self) -> NDArray[np.bool_]:
        """Return which rows (nz, ny) begin with a black node."""
        _, ny, nz = self.shape
        odd: NDArray[np.bool_] = ((np.arange(nz)[:, None] + np.arange(ny)) & 1).astype(np.bool_)
        return odd

    def split(self, values: NDArray[Any]) -> NDArray[Any]:
        """Convert an array of nodes, (nz, ny, nx), to red-black order, (size,)."""
        nx, ny, nz = self.shape
        odd = self._odd_rows()[:, :, None]
        padded = np.zeros((nz, ny, 2 * self.row), values.dtype)
        padded[..., :nx] = values
        even_i, odd_i = padded[..., 0::2], padded[..., 1::2]
        found = np.zeros(self.size, values.dtype)
        found[: 2 * self.half] = np.concatenate(
            [np.where(odd, odd_i, even_i).ravel(), np.where(odd, even_i, odd_i).ravel()]
        )
        return found

    def merge(self, values: NDArray[Any]) -> NDArray[Any]:
        """Convert an array in red-black order to (nz, ny, nx)."""
        nx, ny, nz = self.shape
        odd = self._odd_rows()[:, :, None]
        red, black = values[: 2 * self.half].reshape(2, nz, ny, self.row)
        found = np.empty((nz, ny, 2 * self.row), values.dtype)
        found[..., 0::2] = np.where(odd, black, red)
        found[..., 1::2] = np.where(odd, red, black)
        return np.ascontiguousarray(found[..., :nx])

    def in_rows(self, count: int) -> Colours:
        """Return the grid for `count` problems with consecutive arrays."""
        return self if count == 1 else Colours(self.shape, self.first, self.size)

    def of_row(self, number: int) -> Colours:
        """Return the grid of one problem of `in_rows`."""
        return Colours(self.shape, self.first + number * self.stride)

    def index(self, nodes: NDArray[np.integer]) -> NDArray[np.integer]:
        """Return the indices of nodes, (..., 3) i, j, k, in an array in red-black order."""
        return self.index_of_axes(nodes[..., 0], nodes[..., 1], nodes[..., 2])

    def index_of_axes(
        self, i: NDArray[np.integer], j: NDArray[np.integer], k: NDArray[np.integer]
    ) -> NDArray[np.integer]:
        """Return the indices of nodes i, j, k, which are broadcast, in an array in red-black order."""
        places: NDArray[np.integer] = ((i + j + k) & 1) * self.half + (k * self.shape[1] + j) * self.row + i // 2
        return places + self.first

    def halved(self, first: int) -> Colours:
        """Return the grid of every other node, whose arrays begin at `first`."""
        nx, ny, nz = ((n - 1) // 2 + 1 for n in self.shape)
        return Colours((nx, ny, nz), first)

    @property
    def can_be_halved(self) -> bool:
        """True if every other node forms a grid with the same border and at least three cells per axis."""
        return all(n % 2 == 1 and n > 5 for n in self.shape)
