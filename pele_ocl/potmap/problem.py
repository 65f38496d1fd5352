"""Input of map kernels: coordinates relative to a local origin, and charges that include all factors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..atoms import Atoms, Floats
from ..atoms.charges import rounded_charges
from ..common.errors import InputError
from ..common.threads import started
from ..grid import Grid
from ..opencl.interface import LAW_TERMS, POTENTIAL_LAW
from ..potential_model import PotentialModel

if TYPE_CHECKING:
    from ..opencl.device import Device


LINE_REALS = 4  # of local memory per number in a line: complex values, in two buffers
LARGEST_REALS, ALL_REALS = 5, 9  # per node, in the largest buffer and in all, doubled along an axis, with padding
# A larger mesh on a GPU is faster than the launches of another level (measured); beyond this size, the table for one
# level takes seconds on the host.
CPU_NODES, GPU_NODES = 1 << 21, 1 << 25


APART = 1e-4  # A, minimum distance of two atoms
# In float32, relative to the size of the grid: closer coordinates may be rounded to the same value.
APART_FLOAT32 = 5e-7


def require_apart(atoms: Atoms, grid: Grid, min_distance: float, precision: str) -> None:
    """Raise InputError if a grid point is on a charged atom and there is no minimum distance."""
    distance = APART
    if precision == "float32":
        distance = max(distance, APART_FLOAT32 * float(np.max(grid.last - grid.origin)))
    if min_distance >= distance:
        return
    touching = _near_planes(atoms.positions[:, 0], grid, 2 * distance)
    apart2 = np.zeros(len(touching))
    for along, origin, spacing, n in zip(atoms.positions.T, grid.origin, grid.spacing, grid.shape, strict=True):
        apart = along[touching] - origin
        apart -= np.clip(np.rint(apart / spacing), 0, n - 1) * spacing
        apart2 += apart * apart
        close = np.flatnonzero(apart2 < distance**2)
        touching, apart2 = touching[close], apart2[close]
    touching = touching[atoms.charges[touching] != 0]
    if len(touching) == 0:
        return
    atom = int(touching[0])
    point = np.clip(np.round(grid.index(atoms.positions[atom])), 0, np.array(grid.shape) - 1).astype(np.int64)
    i, j, k = (int(n) for n in point)
    x, y, z = grid.position(point)
    raise InputError(
        f"grid point ({i}, {j}, {k}) at {x:g}, {y:g}, {z:g} A is at the position of {atoms.describe(atom)}, where "
        "the potential is infinite; choose another spacing or origin, or a minimum distance, such as "
        "`min_distance=1`"
    )


def _near_planes(x: Floats, grid: Grid, distance: float) -> NDArray[np.intp]:
    """Return the indices of coordinates that are close to a plane of points of an infinite grid."""
    steps = x - grid.origin[0]
    steps /= grid.spacing[0]
    steps -= np.rint(steps)
    np.abs(steps, out=steps)
    return np.flatnonzero(steps < distance / grid.spacing[0])


RUN = 256  # atoms per partial sum
NEAR = 4.0  # A, maximum distance of near atoms from a map


@dataclass(frozen=True, eq=False)
class MapProblem:
    """Charged atoms and a grid.

    Coordinates are relative to the middle of the grid, so that float32 is accurate wherever the molecule is.

    positions : (n, 3) A, in column-major order, for which NumPy is several times as fast
    charges : (n,) in the map's unit times Angstrom; rounding : returns the charges used by kernels. Uncharged atoms are
        omitted
    corner : (3,) the first point, A; ends : (3,) lowest and highest coordinates of all atoms, A
    box : (3,) lowest and highest coordinates of all points, and of all atoms extended by `margin`, A
    accuracy : by norm, for methods with an accuracy
    longest_line, most_nodes : limits for meshes that fit in the memory of all devices, without padding
    most_one_level : number of nodes, with padding, up to which meshes of two levels are not considered
    near : coefficients of the near part within the model's cutoff, if only this part is computed; `outer` and `inner`
        of the kernels' Law
    margin : A, distance atoms may move in later frames before a new mesh is needed
    """

    grid: Grid
    corner: Floats
    positions: Floats
    charges: Floats
    rounding: Callable[[], NDArray[np.floating]]
    model: PotentialModel
    field: bool
    precision: str
    ends: tuple[Floats, Floats]
    box: tuple[Floats, Floats]
    accuracy: float = 0.0
    near: tuple[Floats, Floats] | None = None
    longest_line: int = 1 << 30
    most_nodes: int = 1 << 62
    most_one_level: int = CPU_NODES
    margin: float = 0.0

    @classmethod
    def of(
        cls, atoms: Atoms, grid: Grid, model: PotentialModel, factor: float, field: bool, precision: str,
        accuracy: float = 0.0,
    ) -> MapProblem:  # fmt: skip
        """Create the problem for atoms and a grid, independent of the device.

        factor : potential of a unit charge at 1 A in the map's unit, without the dielectric
        """
        corner = -(np.array(grid.shape) // 2) * grid.spacing
        charged = _charged(atoms)
        charges = factor / model.dielectric * atoms.charges[charged]
        rounding = started(len(charges), lambda: rounded_charges(charges) if precision == "float32" else charges)
        positions = _centred(atoms.positions[charged], grid, corner)
        ends = _ends(positions)
        box = _around(ends, (corner, corner + (np.array(grid.shape) - 1) * grid.spacing))
        return cls(grid, corner, positions, charges, cache(rounding), model, field, precision, ends, box, accuracy)

    def on(self, devices: Sequence[Device]) -> MapProblem:
        """Return the problem with limits for meshes that fit in the memory of each device.

        Meshes may use half of a device's memory, which leaves room for the map. Lines are stored in local memory, and
        their length is limited to a power of two.
        """
        size = np.dtype(self.precision).itemsize
        numbers = min(int(device.handle.local_mem_size) for device in devices) // (LINE_REALS * size)
        nodes = min(
            min(device.largest_buffer // (LARGEST_REALS * size), device.memory // (2 * ALL_REALS * size))
            for device in devices
        )
        one_level = GPU_NODES if any(device.kind == "GPU" for device in devices) else CPU_NODES
        longest = 1 << (numbers.bit_length() - 1)
        return replace(self, longest_line=longest, most_nodes=nodes, most_one_level=one_level)

    def moved(self, atoms: Atoms) -> MapProblem:
        """Return the problem with other positions. The box object stays the same if it contains all atoms."""
        return self._at(_centred(atoms.positions[_charged(atoms)], self.grid, self.corner))

    def in_float64(self) -> MapProblem:
        """Return the problem without rounding."""
        return replace(self, precision="float64", rounding=lambda: self.charges)

    def with_margin(self, margin: float) -> MapProblem:
        """Return the problem with a box for atoms that move by up to `margin`, A."""
        low, high = self.ends
        box = _around((low - margin, high + margin), self.box)
        return replace(self, margin=margin, box=box)

    def _at(self, positions: Floats) -> MapProblem:
        ends = low, high = _ends(positions)
        if not ((low < self.box[0]) | (high > self.box[1])).any():
            return replace(self, positions=positions, ends=ends)
        return replace(self, positions=positions, ends=ends).with_margin(self.margin)

    @property
    def n_atoms(self) -> int:
        return len(self.charges)

    @property
    def rounded(self) -> NDArray[np.floating]:
        """Charges (n,) as used by kernels."""
        return self.rounding()

    @property
    def components(self) -> int:
        """Values per point: 1 for the potential, 4 with the field."""
        return 4 if self.field else 1

    @cached_property
    def atoms4(self) -> NDArray[np.floating]:
        """x, y, z, charge, (n, 4), in the working precision."""
        return packed4(*self.positions.T, self.rounded, dtype=self.precision)

    @cached_property
    def rests4(self) -> NDArray[np.floating]:
        """Rounding errors of x, y, z in `atoms4`, and 0, (n, 4)."""
        rests = (exact - exact.astype(self.precision) for exact in self.positions.T)
        return packed4(*rests, dtype=self.precision)

    def axis(self, dimension: int, first: int, count: int) -> NDArray[np.floating]:
        """Return `count` rounded coordinates along an axis, from point `first` on; they may extend beyond the grid."""
        return self._exact_axis(dimension, first, count).astype(self.precision)

    def axis_rests(self, dimension: int, first: int, count: int) -> NDArray[np.floating]:
        """Return the rounding errors of `axis`."""
        exact = self._exact_axis(dimension, first, count)
        rests: Floats = exact - exact.astype(self.precision)
        return rests.astype(self.precision)

    def _exact_axis(self, dimension: int, first: int, count: int) -> Floats:
        axis: Floats = self.corner[dimension] + self.grid.spacing[dimension] * np.arange(first, first + count)
        return axis

    @cached_property
    def n_near(self) -> int:
        """Number of atoms in the box of the map or within NEAR of it."""
        low, high = self._near_box
        least, most = self.ends
        if (least > low).all() and (most < high).all():
            return self.n_atoms
        near = np.ones(self.n_atoms, bool)
        for along, start, end in zip(self.positions.T, low, high, strict=True):
            near &= (along > start) & (along < end)
        return int(np.count_nonzero(near))

    @property
    def near_density(self) -> float:
        """Atoms per A^3 in the box of `n_near`."""
        low, high = self._near_box
        return self.n_near / float(np.prod(high - low))

    @property
    def _near_box(self) -> tuple[Floats, Floats]:
        return self.corner - NEAR, self.corner + (np.array(self.grid.shape) - 1) * self.grid.spacing + NEAR

    @cached_property
    def law(self) -> np.void:
        """Struct with the parameters of the potential for kernels."""
        cutoff = self.model.cutoff or np.inf
        outer, inner = self.near or (np.zeros(0), np.zeros(0))
        return POTENTIAL_LAW.pack(
            self.precision,
            kappa=self.model.kappa,
            min_r2=self.model.min_distance**2,
            cutoff2=min(cutoff**2, 1e30),
            inv_cutoff2=1 / cutoff**2,
            outer=_filled(outer),
            inner=_filled(inner),
        )

    @property
    def switches(self) -> dict[str, int]:
        """Macros of cl/potmap/law.clh."""
        model = self.model
        return {
            "DISTANCE_DEPENDENT": int(model.distance_dependent),
            "SCREENED": int(model.kappa > 0),
            "CLAMPED": int(model.min_distance > 0),
            "CUTOFF": 0 if model.cutoff is None else 2 if model.smooth else 1,
            "OUTER_TERMS": 0 if self.near is None else len(self.near[0]),
            "INNER_TERMS": 0 if self.near is None else len(self.near[1]),
            "FIELD": int(self.field),
            "RUN": RUN,
        }

    @property
    def bare(self) -> bool:
        """True if only the plain Coulomb potential is computed."""
        return self.switches == {**dict.fromkeys(self.switches, 0), "RUN": RUN}

    @property
    def evaluations(self) -> int:
        """Number of atoms times number of points."""
        return self.n_atoms * len(self.grid)


def packed4(*columns: NDArray[Any], dtype: DTypeLike) -> NDArray[Any]:
    """Combine up to four columns (n,) to (n, 4), padded with 0."""
    packed = np.zeros((len(columns[0]), 4), dtype)
    for k, column in enumerate(columns):
        packed[:, k] = column
    return packed


def _charged(atoms: Atoms) -> NDArray[np.bool_] | slice:
    """Return an index for the charged atoms."""
    has_charge = atoms.charges != 0
    return slice(None) if has_charge.all() else has_charge


def _centred(positions: Floats, grid: Grid, corner: Floats) -> Floats:
    """Return positions (n, 3) [A] relative to the middle of the grid, in column-major order."""
    centred: Floats = np.subtract(positions, grid.origin, order="F")
    centred += corner
    return centred


def _ends(positions: Floats) -> tuple[Floats, Floats]:
    """Return the lowest and highest coordinates of positions (n, 3); inf and -inf if there are none."""
    low, high = ([end(each) for each in positions.T] if len(positions) else [] for end in (np.min, np.max))
    return (np.array(low), np.array(high)) if low else (np.full(3, np.inf), np.full(3, -np.inf))


def _around(ends: tuple[Floats, Floats], box: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """Return the common bounds of two boxes."""
    return np.minimum(ends[0], box[0]), np.maximum(ends[1], box[1])


def _filled(coefficients: Floats) -> list[float]:
    """Return the coefficients of a polynomial, padded with zeros."""
    return [*coefficients.tolist(), *[0.0] * (LAW_TERMS - len(coefficients))]
