"""Positions of mesh nodes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from ...atoms import Floats, Ints
from ..problem import MapProblem
from ..slabs import MapSlab

Box = tuple[Floats, Floats]  # lowest and highest corner, A
BLOCK = 8  # nodes per block along each axis, as in cl/potmap/mesh/spread.clh
FACTORS = (2, 3, 5, 7)  # allowed prime factors of transform lengths
OFF = 1e-6  # in spacings; maximum rounding error of a point's position
MOST_NODES = 1 << 28  # per sheet; in float32, this needs 3.4 GiB including transforms
WHOLE_VECTORS = 16  # the number of nodes along x is a multiple of this, for vectors on CPUs


@dataclass(frozen=True, eq=False)
class MeshGeometry:
    """Nodes corner + spacing * (i, j, k) around all atoms and all points of a map.

    corner : (3,) A, relative to the origin of the problem; shape : (3,) nodes along x, y, z
    lengths : (3,) of the transforms, at least 2 n - 1, so that periodic images do not contribute
    """

    corner: Floats
    spacing: float
    shape: NDArray[np.int64]
    lengths: NDArray[np.int64]
    window_nodes: int

    @classmethod
    def of(cls, box: Box, spacing: float, window_nodes: int) -> MeshGeometry:
        """box : of all atoms and points; window_nodes : P of the window, which must fit around each of them"""
        low, shape = nodes_around(box, spacing, window_nodes)
        lengths = np.array([transform_length(2 * int(n) - 1) for n in shape])
        corner: Floats = np.asarray(low * spacing, np.float64)
        return cls(corner, spacing, shape, lengths, window_nodes)

    @property
    def low(self) -> NDArray[np.int64]:
        """Index of the first node along each axis, (3,), relative to the origin of the problem."""
        found: NDArray[np.int64] = np.rint(self.corner / self.spacing).astype(np.int64)
        return found

    def placed(self, positions: Floats, axis: int | slice = slice(None)) -> tuple[Ints, Floats]:
        """Return the first of the P nodes around positions [A] along axes, and the fraction of a spacing minus 1/2."""
        fractions = positions - self.corner[axis]
        fractions /= self.spacing
        base = np.floor(fractions)
        fractions -= base
        fractions -= 0.5
        first = base.astype(np.int32)
        first -= self.window_nodes // 2 - 1
        return first, fractions


def blocks_of(geometry: MeshGeometry) -> tuple[int, int, int]:
    """Return the number of blocks of a mesh along x, y, z."""
    x, y, z = (-(-n // BLOCK) for n in geometry.shape.tolist())
    return x, y, z


def nodes_around(box: Box, spacing: float, window_nodes: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first node around a box, (3,), and the number of nodes along x, y, z."""
    low, high = (np.floor(end / spacing + off).astype(np.int64) for end, off in zip(box, (-OFF, OFF), strict=True))
    low, high = low - window_nodes // 2 + 1, high + window_nodes // 2
    return low, high - low + 1


@cache
def transform_length(least: int) -> int:
    """Return the smallest even number of at least `least` with no prime factors other than FACTORS."""
    length = least + least % 2
    while not is_smooth(length):
        length += 2
    return length


def is_smooth(n: int) -> bool:
    """Return whether a length has no prime factors other than FACTORS."""
    for factor in FACTORS:
        while n % factor == 0:
            n //= factor
    return n == 1


@dataclass(frozen=True, eq=False)
class SheetGeometry:
    """Sheets of the same shape, each for `depth` slices of a map; the last one may extend beyond the map.

    first : (3,) first point of the map, A; steps : (3,) vector from there to the last point, A
    slice_spacing : A; n_slices : of the map
    spacing : of the nodes, A; reach : distance beyond which atoms are ignored, A; window_nodes : P of the window
    shape : (3,) nodes of a sheet along x, y, z; lengths : (3,) of their transforms
    """

    first: Floats
    steps: Floats
    slice_spacing: float
    n_slices: int
    spacing: float
    reach: float
    window_nodes: int
    depth: int
    shape: NDArray[np.int64]
    lengths: NDArray[np.int64]

    @classmethod
    def of(cls, problem: MapProblem, spacing: float, reach: float, window_nodes: int) -> SheetGeometry | None:
        """Return sheets as deep as memory allows; None if there is not enough for one slice."""
        n_slices, slice_spacing = problem.grid.shape[2], float(problem.grid.spacing[2])
        steps: Floats = (np.array(problem.grid.shape) - 1) * problem.grid.spacing
        across = _nodes_along(steps[:2], spacing, reach, window_nodes)
        across[0] = -(-across[0] // WHOLE_VECTORS) * WHOLE_VECTORS
        room = min(MOST_NODES, problem.most_nodes // 2) // int(np.prod(across))
        if (room - window_nodes - 1) * spacing < 2 * reach:
            return None
        most = int(((room - window_nodes - 1) * spacing - 2 * reach) / slice_spacing) + 1
        depth = -(-n_slices // -(-n_slices // most))
        along = _nodes_along(np.array([(depth - 1) * slice_spacing]), spacing, reach, window_nodes)
        shape = np.concatenate([across, along])
        # Periodic images are beyond the range of the middle part divided by the window.
        lengths = np.array([transform_length(int(n) + window_nodes) for n in shape])
        return cls(problem.corner, steps, slice_spacing, n_slices, spacing, reach, window_nodes, depth, shape, lengths)

    @property
    def n_sheets(self) -> int:
        return -(-self.n_slices // self.depth)

    def sheets_of(self, slab: MapSlab) -> range:
        """Return the sheets that contain the slices of a slab."""
        return range(slab.first // self.depth, -(-slab.last // self.depth))

    def slices_of(self, sheet: int, slab: MapSlab) -> range:
        """Return the slices of a sheet that belong to a slab."""
        return range(max(slab.first, sheet * self.depth), min(slab.last, (sheet + 1) * self.depth))

    def nodes_of(self, sheet: int) -> MeshGeometry:
        """Return the mesh of a sheet."""
        below = np.floor(self._box(sheet, self.reach)[0] / self.spacing - OFF).astype(np.int64)
        low = below - self.window_nodes // 2 + 1
        corner: Floats = np.asarray(low * self.spacing, np.float64)
        return MeshGeometry(corner, self.spacing, self.shape, self.lengths, self.window_nodes)

    def node_axes(self, sheet: int) -> list[Floats]:
        """Return the coordinates of the nodes along x, y, z, A.

        Coordinates are clipped to the range of nodes used by points of the map.
        """
        corner, (low, high) = self.nodes_of(sheet).corner, self._box(sheet, self.spacing * self.window_nodes / 2)
        return [
            np.clip(corner[axis] + self.spacing * np.arange(self.shape[axis]), low[axis], high[axis])
            for axis in range(3)
        ]

    def box_of_atoms(self, sheet: int) -> Box:
        """Return the box of the atoms that contribute to the points of a sheet."""
        return self._box(sheet, self.reach)

    def _box(self, sheet: int, margin: float) -> Box:
        """Return the box around the points of a sheet, extended by a margin on all sides."""
        start = sheet * self.depth * self.slice_spacing
        end = min(start + (self.depth - 1) * self.slice_spacing, float(self.steps[2]))  # the last one is shorter
        low, high = np.array([0.0, 0.0, start]), np.array([*self.steps[:2], end])
        return self.first + low - margin, self.first + high + margin


def _nodes_along(steps: Floats, spacing: float, reach: float, window_nodes: int) -> NDArray[np.int64]:
    """Return the number of nodes around points over a distance `steps`, A, and around atoms within reach of them."""
    found: NDArray[np.int64] = np.floor((steps + 2 * reach) / spacing + 2 * OFF).astype(np.int64) + 1 + window_nodes
    return found
