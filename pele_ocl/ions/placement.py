"""The steps of a placement on a device; docs/theory/ions.md, section 3, says how they work."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..atoms import Floats
from ..grid import Grid
from ..reference.ions import ROUNDING
from ..tiles import Tiles
from ..variant import Progress

if TYPE_CHECKING:
    from ..opencl.kernels import Run

FILE = "ions.cl"
BLOCK = (16, 8, 8)  # points along x, y, z
TILE = 32
VECTORS = 8  # that a work-item holds in registers
STEPS = 16  # ions between two looks at how far the device is
GPU_GROUP, GPU_CHOOSING_GROUP = 128, 1024

# How far beyond a limit rounding may take a squared distance: float32 positions of atoms are off by more.
REACH = {"float32": 1e-6, "float64": ROUNDING}


class Placement:
    """A map on a device that takes ions one by one.

    run : the device's lock must be held as long as the placement is used
    potential : (nz, ny, nx) kcal/mol/e, before the first ion
    positions : (n, 3) of the molecule's atoms, A
    solute_distance, ion_distance : no ion stands within this distance of an atom, or another ion, A
    """

    def __init__(
        self, run: Run, grid: Grid, potential: NDArray[np.floating], positions: Floats, solute_distance: float,
        ion_distance: float,
    ) -> None:  # fmt: skip
        self.run, self.grid = run, grid
        self.blocks = [-(-n // size) for n, size in zip(grid.shape, BLOCK, strict=True)]
        self.n_blocks = int(np.prod(self.blocks))
        self.n_points = self.n_blocks * int(np.prod(BLOCK))
        self.reach2 = run.dtype.type(ion_distance**2 * (1 + REACH[run.precision]))
        self.map = run.empty(self.n_points)
        run.write(self.map, self._padded(potential))
        self._exclude_solute(positions, run.dtype.type(solute_distance**2 * (1 + REACH[run.precision])))

    def place(self, charges: Sequence[float], progress: Progress | None = None) -> tuple[NDArray[np.intp], Floats]:
        """Place ions of `charges` [kcal A/mol/e] in this order; to be called once.

        Returns their points, (k, 3) indices along x, y, z, and the potentials before each, (k,) kcal/mol/e; k is less
        than the number of charges where no point was left.
        """
        run, n_ions = self.run, len(charges)
        self.state = run.zeros(2, np.int32)
        self.charges, self.places = run.upload(charges), run.empty(4 * n_ions)
        self.threshold = run.zeros(1)
        bounds, best = run.empty(2 * self.n_blocks), run.empty(8 * self.n_blocks)
        choosing, group = self._kernel("choose", 5, GPU_CHOOSING_GROUP)
        refreshing, refresh_group = self._kernel("refresh", 5, GPU_GROUP)
        refresh = run.prepare(
            refreshing, (self.n_blocks,), (refresh_group,),
            self._blocks, np.int32(self.n_blocks), self._spacing, self.reach2, self.state, self.threshold, self.places,
            self.charges, self.map, run.zeros(self.n_blocks, np.int32), bounds, run.empty(4 * self.n_blocks), best,
        )  # fmt: skip
        choose = run.prepare(
            choosing, (group,), (group,), np.int32(self.n_blocks), np.int32(n_ions), self._spacing, self.reach2,
            self.charges, best, self.state, self.threshold, self.places,
        )  # fmt: skip
        for step in range(n_ions):
            refresh()
            choose()
            if step % STEPS == STEPS - 1:
                placed, full = run.download(self.state, 2, np.int32)
                if full:
                    break
                if progress is not None:
                    progress(placed / n_ions)
        self.n_placed = int(run.download(self.state, 2, np.int32)[0])
        places = run.download(self.places, 4 * n_ions).reshape(-1, 4)[: self.n_placed].astype(np.float64)
        return places[:, :3].astype(np.intp), places[:, 3]

    def with_ions(self, potential: NDArray[np.floating]) -> NDArray[np.floating]:
        """A map (nz, ny, nx) with the ions placed, kcal/mol/e; an ion adds nothing where it stands itself."""
        run = self.run
        run.write(self.map, self._padded(potential))
        kernel, group = self._kernel("add_all", 0, GPU_GROUP)
        run.launch(
            kernel, (self.n_blocks * group,), (group,),
            self._blocks, self._spacing, np.int32(self.n_placed), self.places, self.charges, self.map,
        )  # fmt: skip
        nx, ny, nz = self.grid.shape
        values = run.download(self.map, self.n_points).reshape(self._padded_shape)
        return np.ascontiguousarray(values[:nz, :ny, :nx])

    def _exclude_solute(self, positions: Floats, reach2: Any) -> None:
        run, spacing = self.run, self.grid.spacing
        tiles = Tiles.of(positions, TILE)
        middle = (positions.min(axis=0) + positions.max(axis=0)) / 2
        centres = tiles.origins + (middle - self.grid.origin)
        n_allowed = run.zeros(self.n_blocks, np.int32)
        kernel, group = self._kernel("exclude_solute", 0, GPU_GROUP)
        run.launch(
            kernel, (self.n_blocks * group,), (group,),
            self._blocks, _int4(self.grid.shape), self._spacing, reach2, np.int32(len(tiles)), np.int32(TILE),
            run.upload(_four((tiles.offsets + np.repeat(centres, TILE, axis=0)) / spacing)),
            run.upload(tiles.counts, np.int32), run.upload(_four(centres)),
            run.upload(_four(tiles.extents * (1 + 1e-6))), self.map, n_allowed,
        )  # fmt: skip
        self.n_allowed = int(run.download(n_allowed, self.n_blocks, np.int32).sum(dtype=np.int64))

    def _kernel(self, name: str, local_reals: int, gpu_group: int) -> tuple[Any, int]:
        """A kernel and its group: one work-item on CPUs, which compute in vectors instead."""
        device = self.run.device
        names = {"BLOCK_X": BLOCK[0], "BLOCK_Y": BLOCK[1], "BLOCK_Z": BLOCK[2]}
        width, most = device.vector_width(self.run.precision), 1 if device.kind == "CPU" else gpu_group
        names["VECTORS"] = min(16, 128 // width) if device.kind == "CPU" else 8
        return self.run.group_kernel(FILE, name, local_reals, most, width=width, **names)

    @cached_property
    def _blocks(self) -> Any:
        return _int4(self.blocks)

    @cached_property
    def _spacing(self) -> Any:
        return self.run.vector4(*self.grid.spacing)

    @property
    def _padded_shape(self) -> tuple[int, ...]:
        """(nz, ny, nx) of the map in whole blocks."""
        return tuple(n * size for n, size in zip(self.blocks[::-1], BLOCK[::-1], strict=True))

    def _padded(self, values: NDArray[np.floating]) -> NDArray[Any]:
        missing = [(0, all_ - n) for all_, n in zip(self._padded_shape, values.shape, strict=True)]
        return np.ascontiguousarray(np.pad(values, missing) if any(n for _, n in missing) else values, self.run.dtype)


def _int4(values: Sequence[int]) -> Any:
    return np.array((*values, 0), np.int32)


def _four(values: Floats) -> Floats:
    """(n, 3) as (n, 4)."""
    return np.column_stack([values, np.zeros(len(values))])
