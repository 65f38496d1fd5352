"""Regular grids, and maps with values at the points of a grid.

Values belong to points, not to cells: `origin` is the position of the first value.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .atoms import Atoms, Floats, require_atoms
from .common import arguments
from .common.errors import InputError, Suggests
from .common.modules import public
from .common.readonly import ReadOnlyArrays, own_array
from .units import potential_factor

MOST_POINTS = 2**40  # 4 TiB of float32; more is probably caused by a wrong spacing
FARTHEST = 1e10  # A, largest coordinate, so that squared distances do not overflow in float32
LEAST_SPACING = 1e-100  # A, with a finite inverse
TOUCHING = 1e-3  # A, smallest distance of an atom from a grid point


@dataclass(frozen=True, eq=False)
class Grid(ReadOnlyArrays):
    """Points origin + (i, j, k) * spacing, 0 <= (i, j, k) < shape; axes are orthogonal.

    origin : (3,) x, y, z of the first point, A
    spacing : (3,) A along x, y, z, or one number for all
    shape : (nx, ny, nz) points along x, y, z

    Raises InputError for an invalid grid.

    >>> grid = pele_ocl.Grid(origin=(0, 0, 0), spacing=0.5, shape=(3, 4, 5))
    >>> len(grid), grid.last.tolist()
    (60, [1.0, 1.5, 2.0])
    """

    origin: Floats
    spacing: Floats
    shape: tuple[int, int, int]

    def __init__(self, origin: ArrayLike, spacing: ArrayLike, shape: ArrayLike) -> None:
        points = arguments.array("a grid's shape", shape, "iuf", "whole numbers")
        if points.shape != (3,) or points.dtype.kind not in "iu" or (points < 1).any():
            raise InputError(f"a grid's shape must be three whole numbers of at least 1: nx, ny, nz; not {shape!r}")
        if float(np.prod(points.astype(float))) > MOST_POINTS:
            raise InputError(f"a grid of {' x '.join(map(str, points))} points is too large; choose a larger spacing")
        for name, values, size in (("origin", origin, 3), ("spacing", spacing, None)):
            array = arguments.numbers(f"a grid's {name}", values)
            if array.shape != (3,) and not (size is None and array.shape == ()):
                raise InputError(f"a grid's {name} must be three numbers, in Angstrom; not {values}")
            array = np.array(np.broadcast_to(array, (3,)))
            if not np.isfinite(array).all() or (name == "spacing" and (array < LEAST_SPACING).any()):
                wanted = "positive" if name == "spacing" else "finite"
                raise InputError(f"a grid's {name} must be {wanted}; not {values}")
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        object.__setattr__(self, "shape", tuple(int(n) for n in points))
        with np.errstate(over="ignore"):
            last = self.last
        if (np.abs([self.origin, self.spacing, last]) > FARTHEST).any():
            raise InputError(f"a grid must be within {FARTHEST:g} A of 0; not from {self.origin} to {last}")

    @classmethod
    def around(cls, atoms: Atoms, padding: float = 10.0, spacing: ArrayLike = 0.5) -> Grid:
        """Create the smallest grid that extends at least `padding` A beyond the outermost atoms.

        The points are multiples of `spacing`. If an atom coincides with a point, as for ions placed on a grid, the grid
        is shifted by half or a quarter of the spacing.

        >>> atoms = pele_ocl.Atoms(positions=[[0, 0, 0]], charges=[1.0])
        >>> pele_ocl.Grid.around(atoms, padding=2, spacing=1.0).shape
        (6, 6, 6)
        """
        require_atoms(atoms)
        atoms.require((), "a grid around atoms")
        if not arguments.is_finite(padding) or padding < 0:
            raise InputError(f"the padding must be 0 or more Angstrom, not {arguments.described(padding)}")
        steps = cls((0, 0, 0), spacing, (1, 1, 1)).spacing
        beside = _beside(atoms.positions / steps, TOUCHING / steps)
        first = np.floor((atoms.positions.min(axis=0) - padding) / steps - beside + 1e-9) + beside
        last = np.ceil((atoms.positions.max(axis=0) + padding) / steps - beside - 1e-9) + beside
        points = last - first + 1
        if not (points <= MOST_POINTS).all():
            raise InputError(f"a spacing of {steps.min():g} A is too small for this molecule; choose a larger one")
        return cls(first * steps, steps, points.astype(np.int64))

    def __len__(self) -> int:
        return int(np.prod(np.array(self.shape, np.int64)))

    @property
    def last(self) -> Floats:
        """Position of the last point, (3,) A."""
        last: Floats = self.origin + (np.array(self.shape) - 1) * self.spacing
        return last

    def axes(self) -> tuple[Floats, Floats, Floats]:
        """Return the coordinates of points along x, (nx,), y, (ny,), and z, (nz,), A.

        >>> x, y, z = pele_ocl.Grid(origin=(0, 0, 0), spacing=0.5, shape=(3, 1, 1)).axes()
        >>> x.tolist()
        [0.0, 0.5, 1.0]
        """
        x, y, z = (o + h * np.arange(n) for o, h, n in zip(self.origin, self.spacing, self.shape, strict=True))
        return x, y, z

    def position(self, index: ArrayLike) -> Floats:
        """Return the positions (..., 3) A of grid indices (..., 3) in the order i, j, k along x, y, z.

        >>> pele_ocl.Grid(origin=(0, 0, 1), spacing=0.5, shape=(3, 3, 3)).position((2, 0, 1)).tolist()
        [1.0, 0.0, 1.5]
        """
        with np.errstate(over="ignore"):  # for huge indices
            position: Floats = self.origin + _triples("the indices", index) * self.spacing
        return position

    def index(self, positions: ArrayLike) -> Floats:
        """Return the fractional indices (..., 3) along x, y, z of positions (..., 3) A."""
        index: Floats = (_triples("the positions", positions) - self.origin) / self.spacing
        return index


def _triples(name: str, values: ArrayLike) -> Floats:
    """Convert to an array (..., 3). Raises InputError for other shapes."""
    found = arguments.numbers(name, values)
    if found.shape[-1:] != (3,):
        raise InputError(f"{name} have shape {found.shape}; expected (..., 3)")
    return found


def _beside(indices: Floats, close: Floats) -> float:
    """Return the shift, in units of the spacing, so that no atom coincides with a point, or 0 if none is found.

    indices : (n, 3) fractional indices of atoms; close : (3,) smallest distances in units of the spacing
    """
    for share in (0.0, 0.5, 0.25):
        off = np.abs(indices - share - np.round(indices - share))
        if not (off < close).all(axis=1).any():
            return share
    return 0.0


@dataclass(frozen=True, eq=False)
class Map(Suggests):
    """Values at the points of a grid.

    grid : Grid
    values : (nz, ny, nx) in C order, with x as fastest axis; float32 or float64; arrays are copied
    unit : a key of units.POTENTIAL_UNITS, or the unit of a file; "" if unknown
    title : one line of description
    temperature : K, the T of the unit kT/e; None if unknown or not needed

    `numpy.asarray(map)` is `map.values`, not copied. Raises InputError if values and grid do not match.

    >>> grid = pele_ocl.Grid(origin=(0, 0, 0), spacing=1.0, shape=(2, 2, 2))
    >>> pele_ocl.Map(grid, np.arange(8.0).reshape(2, 2, 2), "kT/e", temperature=300.0)
    Map(2 x 2 x 2 points, 0 to 7 kT/e at 300 K, float64)
    """

    grid: Grid
    values: NDArray[np.floating]
    unit: str = ""
    title: str = ""
    temperature: float | None = None

    def __post_init__(self) -> None:
        given = self.values
        self._check()
        object.__setattr__(self, "values", own_array(self.values, given))

    @classmethod
    def owning(
        cls, grid: Grid, values: NDArray[np.floating], unit: str = "", title: str = "", temperature: float | None = None
    ) -> Map:
        """Create a map that takes ownership of its values, without copying them."""
        found = object.__new__(cls)
        for name, value in dict(grid=grid, values=values, unit=unit, title=title, temperature=temperature).items():
            object.__setattr__(found, name, value)
        found._check()
        return found

    def _check(self) -> None:
        """Raise InputError for invalid or mismatched fields."""
        arguments.instance("grid", self.grid, Grid, "a Grid")
        values = arguments.array("values", self.values, "iuf", "numbers")
        if values.dtype not in (np.float32, np.float64):
            values = values.astype(np.float64)
        object.__setattr__(self, "values", values)
        arguments.text("unit", self.unit)
        arguments.text("title", self.title)
        if self.temperature is not None:
            arguments.number("temperature", self.temperature, "a positive number of K", above=0)
        if self.values.shape != self.grid.shape[::-1]:
            raise InputError(
                f"values of shape {self.values.shape} do not match a grid of {self.grid.shape[::-1]} points"
            )

    def __repr__(self) -> str:
        points = " x ".join(map(str, self.grid.shape))
        unit = f" {self.full_unit}" if self.unit else ""
        return f"Map({points} points, {self.values.min():.6g} to {self.values.max():.6g}{unit}, {self.values.dtype})"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.values, dtype) if copy else np.asarray(self.values, dtype)

    @property
    def full_unit(self) -> str:
        """Unit with temperature, such as `kT/e at 298.15 K`."""
        known = self.unit == "kT/e" and self.temperature is not None
        return f"{self.unit} at {self.temperature:.10g} K" if known else self.unit

    def save(self, path: str | PathLike[str]) -> None:
        """Write a map file, with the format determined by its suffix, as in `write_map`.

        >>> grid = Grid(origin=(0, 0, 0), spacing=1.0, shape=(2, 2, 2))
        >>> Map(grid, np.ones((2, 2, 2)), "kT/e").save("ones.dx")
        """
        public("write_map")(path, self)

    def in_unit(self, unit: str, temperature: float | None = None) -> Map:
        """Convert the potential to another unit.

        unit : one of units.POTENTIAL_UNITS
        temperature : K, for kT/e; by default that of the map

        Raises InputError if one of the units is not a unit of potential, or the temperature for kT/e is missing.

        >>> grid = pele_ocl.Grid(origin=(0, 0, 0), spacing=1.0, shape=(1, 1, 1))
        >>> volts = pele_ocl.Map(grid, np.ones((1, 1, 1)), "V")
        >>> round(float(volts.in_unit("kcal/mol/e").values[0, 0, 0]), 2)
        23.06
        """
        arguments.text("unit", unit)
        if temperature is not None:
            _factor("kT/e", temperature)  # checks the temperature
        kelvin = self.temperature if temperature is None else temperature
        if (self.unit, self.temperature) == (unit, kelvin):
            return self
        if "kT/e" in (self.unit, unit) and kelvin is None:
            raise InputError("the temperature of the unit kT/e is not known; give it in K, such as 298.15")
        own = kelvin if self.temperature is None else self.temperature
        factor = _factor(unit, kelvin) / _factor(self.unit, own)
        return replace(self, values=self.values * self.values.dtype.type(factor), unit=unit, temperature=kelvin)


def require_map(map_: object) -> None:
    """Raise InputError for anything but a Map, including results with a map, and paths."""
    if isinstance(getattr(map_, "map", None), Map):
        raise InputError(f"expected a Map, not a {type(map_).__name__}; its attribute `map` is a Map: result.map")
    arguments.instance("map", map_, Map, "a Map: read_map('map.dx'), or potmap(atoms, grid).map")


def _factor(unit: str, temperature: float | None) -> float:
    return potential_factor(unit) if temperature is None else potential_factor(unit, temperature)
