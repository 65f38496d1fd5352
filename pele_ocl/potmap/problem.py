"""Input of a map for the kernels: lengths from a local origin, charges with every factor folded in."""

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


LINE_REALS = 4  # of local memory for each number of a line: complex, there and back
LARGEST_REALS, ALL_REALS = 5, 9  # for each node, of the largest buffer and of all; doubled along an axis, with padding
# A GPU is done with a larger mesh before it is done with another level's launches (measured); beyond, the host's table
# for one level takes seconds.
CPU_NODES, GPU_NODES = 1 << 21, 1 << 25


APART = 1e-4  # A, as two atoms must be
# In float32, of the grid's size: coordinates that differ by less may be rounded to the same.
APART_FLOAT32 = 5e-7


def require_apart(atoms: Atoms, grid: Grid, min_distance: float, precision: str) -> None:
    """Raise InputError if a point lies on a charged atom and no minimum distance holds the potential finite."""
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
        f"grid point ({i}, {j}, {k}) at {x:g}, {y:g}, {z:g} A stands on {atoms.describe(atom)}, where the potential is "
        "infinite; choose another spacing or origin, or give points near atoms the potential of a minimum distance "
        "(`min_distance=1`, say)"
    )


def _near_planes(x: Floats, grid: Grid, distance: float) -> NDArray[np.intp]:
    """Find the coordinates along x that are so near to a plane of points, on a grid without ends [A]: few of many."""
    steps = x - grid.origin[0]
    steps /= grid.spacing[0]
    steps -= np.rint(steps)
    np.abs(steps, out=steps)
    return np.flatnonzero(steps < distance / grid.spacing[0])


RUN = 256  # atoms summed on their own
NEAR = 4.0  # A, from a map within which atoms are near it


@dataclass(frozen=True, eq=False)
class MapProblem:
    """Charged atoms and a grid.

    All lengths are from a point in the middle of the grid. So float32 keeps its digits wherever the molecule lies.

    positions : (n, 3) A, one coordinate of all atoms after the other in memory, where NumPy is several times as fast
    charges : (n,) in the map's unit times Angstrom; rounding : returns them as the kernels have them. Atoms without
        charge are left out of positions and both
    corner : (3,) the first point, A; ends : (3,) the lowest and the highest coordinates of all atoms, A
    box : (3,) the lowest and the highest coordinates of all points, and of all atoms moved by `margin`, A
    accuracy : by norm, of methods that have one
    longest_line, most_nodes : of meshes that fit into the memory of all devices, without padding
    most_one_level : nodes with padding up to which meshes of two levels are not considered
    near : coefficients of the near part within the model's cutoff, if no other part is wanted; `outer` and `inner` of
        the kernels' Law
    margin : A, by which atoms may move in further frames before a mesh has no room for them
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
        """Make the problem for some atoms and a grid, of no device in particular.

        factor : potential of a unit charge at 1 A in the map's unit, the dielectric left out
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
        """Return the problem with limits on meshes that fit into the memory of each device.

        They take half of a device's memory, as the map needs some, too. Lines lie in local memory, a power of two of
        room.
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
        """Move the atoms to other positions. The box stays one object if it has room for them."""
        return self._at(_centred(atoms.positions[_charged(atoms)], self.grid, self.corner))

    def in_float64(self) -> MapProblem:
        """Return the problem with nothing rounded."""
        return replace(self, precision="float64", rounding=lambda: self.charges)

    def with_margin(self, margin: float) -> MapProblem:
        """Return the problem with room for atoms that move by so much, A."""
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
        """Charges (n,) as the kernels have them."""
        return self.rounding()

    @property
    def components(self) -> int:
        """Values of a point: the potential, and the three of the field."""
        return 4 if self.field else 1

    @cached_property
    def atoms4(self) -> NDArray[np.floating]:
        """(n, 4) x, y, z, charge in the working precision."""
        return packed4(*self.positions.T, self.rounded, dtype=self.precision)

    @cached_property
    def rests4(self) -> NDArray[np.floating]:
        """(n, 4) what rounding took from x, y, z of `atoms4`, and 0."""
        rests = (exact - exact.astype(self.precision) for exact in self.positions.T)
        return packed4(*rests, dtype=self.precision)

    def axis(self, dimension: int, first: int, count: int) -> NDArray[np.floating]:
        """Coordinates (count,) from point `first` on along x, y or z, rounded; the grid may end before them."""
        return self._exact_axis(dimension, first, count).astype(self.precision)

    def axis_rests(self, dimension: int, first: int, count: int) -> NDArray[np.floating]:
        """Return the parts of coordinates that rounding took from `axis`."""
        exact = self._exact_axis(dimension, first, count)
        rests: Floats = exact - exact.astype(self.precision)
        return rests.astype(self.precision)

    def _exact_axis(self, dimension: int, first: int, count: int) -> Floats:
        axis: Floats = self.corner[dimension] + self.grid.spacing[dimension] * np.arange(first, first + count)
        return axis

    @cached_property
    def n_near(self) -> int:
        """Atoms in the box of the map or near it."""
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
        """Law of the kernels."""
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
        """True if the plain Coulomb potential is all that is wanted."""
        return self.switches == {**dict.fromkeys(self.switches, 0), "RUN": RUN}

    @property
    def evaluations(self) -> int:
        """Atoms times points."""
        return self.n_atoms * len(self.grid)


def packed4(*columns: NDArray[Any], dtype: DTypeLike) -> NDArray[Any]:
    """(n, 4) up to four columns (n,), and 0."""
    packed = np.zeros((len(columns[0]), 4), dtype)
    for k, column in enumerate(columns):
        packed[:, k] = column
    return packed


def _charged(atoms: Atoms) -> NDArray[np.bool_] | slice:
    """Choose the atoms of a problem."""
    has_charge = atoms.charges != 0
    return slice(None) if has_charge.all() else has_charge


def _centred(positions: Floats, grid: Grid, corner: Floats) -> Floats:
    """Return positions (n, 3) [A] relative to the middle of the grid, one coordinate after the other in memory."""
    centred: Floats = np.subtract(positions, grid.origin, order="F")
    centred += corner
    return centred


def _ends(positions: Floats) -> tuple[Floats, Floats]:
    """Find the lowest and the highest coordinates of positions (n, 3); inf and -inf if there are none."""
    low, high = ([end(each) for each in positions.T] if len(positions) else [] for end in (np.min, np.max))
    return (np.array(low), np.array(high)) if low else (np.full(3, np.inf), np.full(3, -np.inf))


def _around(ends: tuple[Floats, Floats], box: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """Return the lowest and the highest of two pairs of corners."""
    return np.minimum(ends[0], box[0]), np.maximum(ends[1], box[1])


def _filled(coefficients: Floats) -> list[float]:
    """Coefficients of a polynomial, filled up with zeros."""
    return [*coefficients.tolist(), *[0.0] * (LAW_TERMS - len(coefficients))]
