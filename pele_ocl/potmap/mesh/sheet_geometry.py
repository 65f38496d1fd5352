"""Geometry of the sheets of a map: finer meshes around some of its slices each, with all atoms that count."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...atoms import Floats
from ..problem import MapProblem
from ..slabs import MapSlab
from .geometry import OFF, Box, MeshGeometry, transform_length

MOST_NODES = 1 << 28  # of a sheet, which in float32 takes 3.4 GiB with its transforms
WHOLE_VECTORS = 16  # nodes along x, of which they are multiples: CPUs take whole vectors of them


@dataclass(frozen=True, eq=False)
class SheetGeometry:
    """Sheets of one shape, each of `depth` slices of a map; the last one may reach out of it.

    first, steps : (3,) A, the first point of the map, and how far its last one is from that
    slice_spacing : A; n_slices : of the map
    spacing : of the nodes, A; reach : A, beyond which no atom counts; window_nodes : P of the window
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
        """Sheets as deep as memory allows; None where not even one slice has room."""
        n_slices, slice_spacing = problem.grid.shape[2], float(problem.grid.spacing[2])
        steps: Floats = (np.array(problem.grid.shape) - 1) * problem.grid.spacing
        across = _nodes_along(steps[:2], spacing, reach, window_nodes)
        across[0] = -(-across[0] // WHOLE_VECTORS) * WHOLE_VECTORS
        room = min(MOST_NODES, problem.room.nodes // 2) // int(np.prod(across))
        if (room - window_nodes - 1) * spacing < 2 * reach:
            return None
        most = int(((room - window_nodes - 1) * spacing - 2 * reach) / slice_spacing) + 1
        depth = -(-n_slices // -(-n_slices // most))
        along = _nodes_along(np.array([(depth - 1) * slice_spacing]), spacing, reach, window_nodes)
        shape = np.concatenate([across, along])
        # A node meets itself in the next period only beyond where the middle part, divided by the window, ends.
        lengths = np.array([transform_length(int(n) + window_nodes) for n in shape])
        return cls(problem.corner, steps, slice_spacing, n_slices, spacing, reach, window_nodes, depth, shape, lengths)

    @property
    def n_sheets(self) -> int:
        return -(-self.n_slices // self.depth)

    def sheets_of(self, slab: MapSlab) -> range:
        """List the sheets that the slices of a slab belong to."""
        return range(slab.first // self.depth, -(-slab.last // self.depth))

    def slices_of(self, sheet: int, slab: MapSlab) -> range:
        """List the slices of a sheet that belong to a slab."""
        return range(max(slab.first, sheet * self.depth), min(slab.last, (sheet + 1) * self.depth))

    def nodes_of(self, sheet: int) -> MeshGeometry:
        """Make the mesh of a sheet."""
        below = np.floor(self._box(sheet, self.reach)[0] / self.spacing - OFF).astype(np.int64)
        low = below - self.window_nodes // 2 + 1
        corner: Floats = np.asarray(low * self.spacing, np.float64)
        return MeshGeometry(corner, self.spacing, self.shape, self.lengths, self.window_nodes)

    def node_axes(self, sheet: int) -> list[Floats]:
        """Return coordinates of the nodes along x, y, z, A.

        None is farther from the map than nodes that its points use.
        """
        corner, (low, high) = self.nodes_of(sheet).corner, self._box(sheet, self.spacing * self.window_nodes / 2)
        return [
            np.clip(corner[axis] + self.spacing * np.arange(self.shape[axis]), low[axis], high[axis])
            for axis in range(3)
        ]

    def atoms_of(self, sheet: int, positions: Floats) -> NDArray[np.intp]:
        """Indices of the atoms at positions (n, 3) [A] that count for the points of a sheet."""
        low, high = self._box(sheet, self.reach)
        return np.flatnonzero(np.all((positions > low) & (positions < high), axis=1))

    def _box(self, sheet: int, margin: float) -> Box:
        """Return the box around the points of the map that a sheet has, and so much more on all sides."""
        start = sheet * self.depth * self.slice_spacing
        end = min(start + (self.depth - 1) * self.slice_spacing, float(self.steps[2]))  # the map's, of the last sheet
        low, high = np.array([0.0, 0.0, start]), np.array([*self.steps[:2], end])
        return self.first + low - margin, self.first + high + margin


def _nodes_along(steps: Floats, spacing: float, reach: float, window_nodes: int) -> NDArray[np.int64]:
    """Nodes around points so far apart, A, and around atoms within reach of them, wherever they are between nodes."""
    found: NDArray[np.int64] = np.floor((steps + 2 * reach) / spacing + 2 * OFF).astype(np.int64) + 1 + window_nodes
    return found
