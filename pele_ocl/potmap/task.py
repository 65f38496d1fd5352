"""A map as the kernels see it: lengths from a local origin, charges with every factor folded in."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Floats
from ..charges import rounded_charges
from ..errors import InputError
from ..grid import Grid
from ..opencl.shared import POTENTIAL_LAW
from ..potential_model import PotentialModel

if TYPE_CHECKING:
    from ..opencl.kernels import Run

RUN = 256  # atoms summed on their own
AT_ONCE = 1 << 20  # values with padding that are downloaded at a time, so that they are copied from a cache
MOST_VALUES = 2**31 - 1  # in a slab: the kernels count them with an int


@dataclass(frozen=True, eq=False)
class Task:
    """Charged atoms and a grid.

    All lengths are from a point in the middle of the grid, so that float32 keeps its digits wherever the molecule lies.

    positions : (n, 3) A; charges : (n,) in the map's unit times Angstrom; neither has atoms without charge
    corner : (3,) the first point, A
    """

    grid: Grid
    corner: Floats
    positions: Floats
    charges: Floats
    model: PotentialModel
    field: bool
    precision: str

    @classmethod
    def of(cls, atoms: Atoms, grid: Grid, model: PotentialModel, factor: float, field: bool, precision: str) -> Task:
        """factor : potential of a unit charge at 1 A in the map's unit, the dielectric left out"""
        corner = -(np.array(grid.shape) // 2) * grid.spacing
        charged = atoms.charges != 0
        positions = atoms.positions[charged] - grid.origin + corner
        charges = factor / model.dielectric * atoms.charges[charged]
        return cls(grid, corner, positions, charges, model, field, precision)

    @property
    def n_atoms(self) -> int:
        return len(self.charges)

    @property
    def components(self) -> int:
        """Values of a point: the potential, and the three of the field."""
        return 4 if self.field else 1

    @cached_property
    def atoms4(self) -> NDArray[np.floating]:
        """(n, 4) x, y, z, charge in the working precision."""
        atoms = np.empty((self.n_atoms, 4), self.precision)
        atoms[:, :3] = self.positions
        atoms[:, 3] = rounded_charges(self.charges) if self.precision == "float32" else self.charges
        return atoms

    def axis(self, dimension: int, first: int, count: int) -> NDArray[np.floating]:
        """Coordinates (count,) from point `first` on along x, y or z, rounded; the grid may end before them."""
        indices = np.arange(first, first + count)
        axis: Floats = self.corner[dimension] + self.grid.spacing[dimension] * indices
        return axis.astype(self.precision)

    @cached_property
    def law(self) -> Any:
        """The kernels' Law."""
        cutoff = self.model.cutoff or np.inf
        return POTENTIAL_LAW.pack(
            self.precision,
            kappa=self.model.kappa,
            min_r2=self.model.min_distance**2,
            cutoff2=min(cutoff**2, 1e30),
            inv_cutoff2=1 / cutoff**2,
        )

    @property
    def switches(self) -> dict[str, int]:
        """The macros of cl/potmap/law.clh."""
        model = self.model
        return {
            "DISTANCE_DEPENDENT": int(model.distance_dependent),
            "SCREENED": int(model.kappa > 0),
            "CLAMPED": int(model.min_distance > 0),
            "CUTOFF": 0 if model.cutoff is None else 2 if model.smooth else 1,
            "FIELD": int(self.field),
            "RUN": RUN,
        }

    @property
    def bare(self) -> bool:
        """Whether the plain Coulomb potential is all that is wanted."""
        return self.switches == {**dict.fromkeys(self.switches, 0), "RUN": RUN}

    @property
    def evaluations(self) -> int:
        """Atoms times points."""
        return self.n_atoms * len(self.grid)


@dataclass(frozen=True, eq=False)
class Slab:
    """Slices `first` to `last` - 1 of a map on a device, padded to whole blocks of points.

    shape : (nx, ny, nz) with the padding
    axes : the points' coordinates along x, y, z, as the device has them
    buffers : the same on the device; map : buffer (components, nz, ny, nx), 0 at first
    """

    task: Task
    first: int
    last: int
    shape: tuple[int, int, int]
    axes: tuple[NDArray[np.floating], ...]
    buffers: tuple[Any, ...]
    map: Any

    @classmethod
    def on(cls, run: Run, task: Task, first: int, last: int, pad: tuple[int, int, int]) -> Slab:
        """pad : points of a block along x, y, z

        Raises InputError where even a few slices have too many points.
        """
        nx, ny, nz = (-(-n // p) * p for n, p in zip((*task.grid.shape[:2], last - first), pad, strict=True))
        if task.components * nx * ny * nz > MOST_VALUES:
            slices = " x ".join(f"{n:,}" for n in task.grid.shape[:2])
            raise InputError(f"slices of {slices} points are too large; choose a larger spacing")
        axes = tuple(task.axis(d, first if d == 2 else 0, n) for d, n in enumerate((nx, ny, nz)))
        buffers = tuple(run.upload(axis) for axis in axes)
        return cls(task, first, last, (nx, ny, nz), axes, buffers, run.zeros(task.components * nx * ny * nz))

    @property
    def n_points(self) -> int:
        """Points with the padding."""
        return self.shape[0] * self.shape[1] * self.shape[2]

    def arguments(self, n_atoms: int) -> tuple[Any, ...]:
        """The kernels' MAP_ARGUMENTS."""
        sizes = (np.int32(n) for n in (n_atoms, *self.shape))
        return self.task.law, *sizes, *self.buffers, self.map

    def download(self, run: Run, values: NDArray[np.floating]) -> None:
        """Fill values (components, slices, ny, nx), which lack the padding, in C order each."""
        nx, ny, _ = self.shape
        for component, part in enumerate(values):
            start = component * self.n_points
            if (ny, nx) == part.shape[1:]:
                run.read(part, self.map, start)
                continue
            slices = max(1, AT_ONCE // (nx * ny))
            for first in range(0, len(part), slices):
                some = part[first : first + slices]
                padded = np.empty((len(some), ny, nx), self.task.precision)
                run.read(padded, self.map, start + first * nx * ny)
                some[:] = padded[:, : some.shape[1], : some.shape[2]]
