"""Nodes of a grid in two colours, as kernels have them: cl/pb/nodes.clh."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

LANES = 16  # numbers to which arrays are filled up


@dataclass(frozen=True)
class Colours:
    """Grid of (nx, ny, nz) nodes whose arrays have all red nodes first, then the black ones.

    first : index of its first node in arrays of several grids
    stride : numbers from the arrays of a row to the next row's, if several problems are solved at once
    """

    shape: tuple[int, int, int]
    first: int = 0
    stride: int = 0

    @property
    def row(self) -> int:
        """Places for nodes of one colour along x; the last may be empty."""
        return (self.shape[0] + 1) // 2

    @property
    def half(self) -> int:
        """Places of a colour."""
        return self.row * self.shape[1] * self.shape[2]

    @property
    def size(self) -> int:
        """Numbers of an array, with the zeros that fill it up."""
        return -(-2 * self.half // LANES) * LANES

    @property
    def fields(self) -> dict[str, int]:
        """Members of the struct ColourGrid."""
        nx, ny, nz = self.shape
        return {"nx": nx, "ny": ny, "nz": nz, "row": self.row, "first": self.first, "stride": self.stride}

    def _odd_rows(self) -> NDArray[np.bool_]:
        """Rows (nz, ny) whose first node is black."""
        _, ny, nz = self.shape
        odd: NDArray[np.bool_] = ((np.arange(nz)[:, None] + np.arange(ny)) & 1).astype(np.bool_)
        return odd

    def split(self, values: NDArray[Any]) -> NDArray[Any]:
        """Order an array of nodes, (nz, ny, nx), by colours, (size,)."""
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
        """Order an array by colours as (nz, ny, nx)."""
        nx, ny, nz = self.shape
        odd = self._odd_rows()[:, :, None]
        red, black = values[: 2 * self.half].reshape(2, nz, ny, self.row)
        found = np.empty((nz, ny, 2 * self.row), values.dtype)
        found[..., 0::2] = np.where(odd, black, red)
        found[..., 1::2] = np.where(odd, red, black)
        return np.ascontiguousarray(found[..., :nx])

    def in_rows(self, count: int) -> Colours:
        """Grids of this shape of so many problems, whose arrays follow each other."""
        return self if count == 1 else Colours(self.shape, self.first, self.size)

    def of_row(self, number: int) -> Colours:
        """Grid of one of the problems of `in_rows`."""
        return Colours(self.shape, self.first + number * self.stride)

    def index(self, nodes: NDArray[np.integer]) -> NDArray[np.integer]:
        """Find the places of nodes, (..., 3) i, j, k, in an array by colours."""
        return self.index_of_axes(nodes[..., 0], nodes[..., 1], nodes[..., 2])

    def index_of_axes(
        self, i: NDArray[np.integer], j: NDArray[np.integer], k: NDArray[np.integer]
    ) -> NDArray[np.integer]:
        """Find the places of nodes i, j, k, whose shapes are broadcast, in an array by colours."""
        places: NDArray[np.integer] = ((i + j + k) & 1) * self.half + (k * self.shape[1] + j) * self.row + i // 2
        return places + self.first

    def halved(self, first: int) -> Colours:
        """Take every other node as a grid, which begins at `first` in its arrays."""
        nx, ny, nz = ((n - 1) // 2 + 1 for n in self.shape)
        return Colours((nx, ny, nz), first)

    @property
    def can_be_halved(self) -> bool:
        """True if every other node makes a grid with the same border, large enough to be of use."""
        return all(n % 2 == 1 and n > 5 for n in self.shape)
