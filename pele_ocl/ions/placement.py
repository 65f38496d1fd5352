"""Placement of ions on a device; docs/theory/ions.md, section 3, describes the steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..atoms import Floats
from ..common.variant import Progress
from ..grid import Grid
from ..tiles import Tiles

if TYPE_CHECKING:
    from ..opencl.kernel import Kernel
    from ..opencl.queue import Queue

BLOCK = (16, 8, 8)  # points along x, y, z
TILE = 32
STEPS = 16  # ions between two progress checks
# Relative tolerance of squared distance limits, so that rounding does not decide about points exactly at the limit.
ROUNDING = {"float32": 1e-6, "float64": 1e-9}


@dataclass(frozen=True)
class WorkSplit:
    """Work distribution on a device.

    width : points per vector
    vectors : vectors per work-item
    group : work-items per block
    choosing : work-items that search all blocks for the best point
    """

    width: int
    vectors: int
    group: int
    choosing: int

    @classmethod
    def of(cls, kind: str, width: int) -> WorkSplit:
        """Choose the work distribution for a kind of device.

        On CPUs, a work-item holds a slice of a block, but at most 16 vectors.
        """
        if kind == "CPU":
            return cls(width, min(16, BLOCK[0] * BLOCK[1] // width), 1, 1)
        return cls(1, BLOCK[2], BLOCK[0] * BLOCK[1], 1024)


class Placement:
    """A potential map on a device, to which ions are added one by one.

    potential : (nz, ny, nx) kcal/mol/e, without ions
    positions : (n, 3) positions of the molecule's atoms, A
    solute_distance, ion_distance : minimum distance of an ion to an atom and to another ion, A

    n_allowed is the number of points available to the first ion.
    """

    def __init__(
        self, queue: Queue, grid: Grid, potential: NDArray[np.floating], positions: Floats, solute_distance: float,
        ion_distance: float, split: WorkSplit | None = None,
    ) -> None:  # fmt: skip
        self.queue, self.grid = queue, grid
        self.split = split or WorkSplit.of(queue.device.kind, queue.device.vector_width(queue.precision))
        self.blocks = [-(-n // size) for n, size in zip(grid.shape, BLOCK, strict=True)]
        self.n_blocks = int(np.prod(self.blocks))
        self.map = queue.empty(self.n_blocks * int(np.prod(BLOCK)))
        queue.write(self.map, self._padded(potential))
        self.n_allowed = self._exclude(positions, self._squared(solute_distance))
        self.reach2 = self._squared(ion_distance)

    def place(self, charges: Sequence[float], progress: Progress | None = None) -> tuple[NDArray[np.intp], Floats]:
        """Place ions with these `charges` (kcal A/mol/e) in order. Call it only once.

        Returns the grid indices of the ions along x, y, z, (k, 3), and the potential at each before it was placed, (k,)
        kcal/mol/e. k is smaller than the number of charges if there was not enough room.
        """
        queue, n_ions = self.queue, len(charges)
        placed, strengths = queue.empty(4 * n_ions), queue.upload(charges)
        state, threshold = queue.zeros(2, np.int32), queue.zeros(1)
        seen, slopes = queue.zeros(self.n_blocks, np.int32), queue.zeros(4 * self.n_blocks)
        bounds, best = queue.empty(2 * self.n_blocks), queue.empty(8 * self.n_blocks)
        kernel, group = self._kernel("ions/refresh.cl", "refresh", 5)
        refresh = queue.bind_kernel(
            kernel, (self.n_blocks, 1), (group, 1),
            dict(
                blocks=self._blocks, n_blocks=self.n_blocks, spacing=self._spacing, reach2=self.reach2, state=state,
                threshold=threshold, ions=placed, charges=strengths, map=self.map, seen=seen, bounds=bounds,
                slopes=slopes, best=best,
            ),
        )  # fmt: skip
        kernel, group = queue.group_kernel("ions/choose.cl", "choose", 5, self.split.choosing)
        choose = queue.bind_kernel(
            kernel, (group, 1), (group, 1),
            dict(
                n_blocks=self.n_blocks, n_ions=n_ions, spacing=self._spacing, reach2=self.reach2, charges=strengths,
                best=best, state=state, threshold=threshold, ions=placed,
            ),
        )  # fmt: skip
        for step in range(n_ions):
            queue.launch_bound([refresh, choose], 1)
            if step % STEPS == STEPS - 1:
                n_placed, full = queue.download(state, 2, np.int32)
                if full:
                    break
                if progress is not None:
                    progress(n_placed / n_ions)
        n_placed = int(queue.download(state, 2, np.int32)[0])
        found = queue.download(placed, 4 * n_ions).reshape(-1, 4)[:n_placed].astype(np.float64)
        return found[:, :3].astype(np.intp), found[:, 3]

    def with_ions(
        self, potential: NDArray[np.floating], points: NDArray[np.intp], potentials: Floats, charges: Sequence[float]
    ) -> NDArray[np.floating]:
        """Add the potential of the placed ions to a map, (nz, ny, nx) kcal/mol/e, except at each ion's own point.

        points, potentials : result of `place`
        """
        queue = self.queue
        queue.write(self.map, self._padded(potential))
        kernel, group = self._kernel("ions/add.cl", "add_all")
        placed = np.column_stack([points, np.zeros(len(points))])
        queue.launch(
            kernel, (self.n_blocks * group,), (group,),
            dict(
                blocks=self._blocks, spacing=self._spacing, n_ions=len(points), ions=queue.upload(placed),
                charges=queue.upload(charges), map=self.map,
            ),
        )  # fmt: skip
        nx, ny, nz = self.grid.shape
        padded = queue.download(self.map, int(np.prod(self._padded_shape))).reshape(self._padded_shape)
        values = np.ascontiguousarray(padded[:nz, :ny, :nx])
        for k, (x, y, z) in enumerate(points):
            apart = np.linalg.norm((points[k + 1 :] - points[k]) * self.grid.spacing, axis=1)
            values[z, y, x] = potentials[k] + (np.array(charges[k + 1 :]) / apart).sum()
        return values

    def _exclude(self, positions: Floats, reach2: np.floating) -> int:
        """Exclude points near atoms. Returns the number of remaining points."""
        queue, spacing = self.queue, self.grid.spacing
        tiles = Tiles.of(positions, TILE)
        middle = (positions.min(axis=0) + positions.max(axis=0)) / 2
        centres = tiles.origins + (middle - self.grid.origin)
        n_allowed = queue.zeros(self.n_blocks, np.int32)
        kernel, group = self._kernel("ions/exclude.cl", "exclude_solute")
        queue.launch(
            kernel, (self.n_blocks * group,), (group,),
            dict(
                blocks=self._blocks, shape=queue.int4(*self.grid.shape), spacing=self._spacing, reach2=reach2,
                n_tiles=len(tiles), tile_size=TILE,
                atoms=queue.upload(_four((tiles.offsets + np.repeat(centres, TILE, axis=0)) / spacing)),
                counts=queue.upload(tiles.counts, np.int32), centres=queue.upload(_four(centres)),
                extents=queue.upload(_four(tiles.extents * (1 + 1e-6))), map=self.map, n_allowed=n_allowed,
            ),
        )  # fmt: skip
        return int(queue.download(n_allowed, self.n_blocks, np.int32).sum(dtype=np.int64))

    def _kernel(self, file: str, name: str, local_reals: int = 0) -> tuple[Kernel, int]:
        """Build a kernel over blocks of points. Returns it with its work-group size."""
        split = self.split
        macros = {"BLOCK_X": BLOCK[0], "BLOCK_Y": BLOCK[1], "BLOCK_Z": BLOCK[2], "VECTORS": split.vectors}
        return self.queue.group_kernel(file, name, local_reals, split.group, width=split.width, **macros)

    def _squared(self, distance: float) -> np.floating:
        return self.queue.dtype.type(distance**2 * (1 + ROUNDING[self.queue.precision]))

    @cached_property
    def _blocks(self) -> np.void:
        return self.queue.int4(*self.blocks)

    @cached_property
    def _spacing(self) -> np.void:
        return self.queue.vector4(*self.grid.spacing)

    @property
    def _padded_shape(self) -> tuple[int, ...]:
        """Shape (nz, ny, nx) of the map, rounded up to whole blocks."""
        return tuple(n * size for n, size in zip(self.blocks[::-1], BLOCK[::-1], strict=True))

    def _padded(self, values: NDArray[np.floating]) -> NDArray[Any]:
        missing = [(0, padded - n) for padded, n in zip(self._padded_shape, values.shape, strict=True)]
        return np.ascontiguousarray(np.pad(values, missing) if any(n for _, n in missing) else values, self.queue.dtype)


def _four(values: Floats) -> Floats:
    """Pad (n, 3) to (n, 4) with zeros."""
    return np.column_stack([values, np.zeros(len(values))])
