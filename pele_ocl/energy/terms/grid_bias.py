"""Biases on collective variables, interpolated on a grid; docs/theory/sampling.md."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ...atoms import Atoms, Floats, require_atoms
from ...common.arguments import described, flag, number, numbers, whole_number
from ...common.errors import InputError
from ...common.readonly import read_only
from ...opencl.interface import VARIABLE_REALS
from ...units import BOLTZMANN_KCAL
from .term import Term, TermContext
from .variables import Variable, checked_variables

if TYPE_CHECKING:
    from ...opencl.binding import Launch

ITEMS = 32  # per group on a GPU
MOST_NODES = 1 << 24
Range = tuple[float, float]


@dataclass(frozen=True)
class Axis:
    """n equally spaced grid nodes along a variable; a periodic axis does not repeat its first node."""

    n: int
    first: float
    spacing: float
    is_periodic: bool

    @classmethod
    def of(cls, variable: Variable, bounds: Range | None, spacing: float = 1.0, n: int | None = None) -> Axis:
        """Create an axis of n nodes, or of nodes at most `spacing` apart.

        Raises InputError for a variable with neither period nor bounds, or with both.
        """
        if variable.period:
            if bounds is not None:
                raise InputError("a torsion is periodic and has no bounds; give None instead")
            n = n or max(4, int(np.ceil(variable.period / spacing)))
            return cls(n, -variable.period / 2, variable.period / n, True)
        if bounds is None or not np.isfinite(bounds).all() or not bounds[0] < bounds[1]:
            name = type(variable).__name__
            raise InputError(f"bounds of a {name} are {bounds}; expected two rising numbers of {variable.unit}")
        n = n or max(2, int(np.ceil((bounds[1] - bounds[0]) / spacing)) + 1)
        return cls(n, float(bounds[0]), (bounds[1] - bounds[0]) / (n - 1), False)

    @property
    def nodes(self) -> Floats:
        """Values of the variable at the nodes, (n,)."""
        found: Floats = self.first + self.spacing * np.arange(self.n, dtype=np.float64)
        return found

    @property
    def n_cells(self) -> int:
        """Number of intervals between nodes."""
        return self.n if self.is_periodic else self.n - 1

    def away(self, values: Floats | float, center: float) -> Floats:
        """Displacement of values from a centre; the minimum image if the variable is periodic."""
        d: Floats = np.array(values - center, np.float64)
        period = self.n * self.spacing
        if self.is_periodic:
            d -= period * np.round(d / period)
        return d


class Interpolated(Term):
    """Bias on one to three collective variables, interpolated on a grid; each row has its own grid.

    variables : as given, a Variable or several; axes : nodes along each variable
    """

    variables: Variable | Sequence[Variable]

    @property
    def members(self) -> tuple[Variable, ...]:
        """The variables as a tuple."""
        return checked_variables(self.variables)

    @property
    @abstractmethod
    def axes(self) -> tuple[Axis, ...]:
        """Nodes along each variable."""

    @property
    @abstractmethod
    def first_grid(self) -> Floats:
        """Initial grid of rows, (n_1, ..., 2^d) as in GridBias."""

    def check(self, atoms: Atoms) -> None:
        require_atoms(atoms)
        for variable in self.members:
            variable.traits(atoms)

    def energies(self, atoms: Atoms) -> tuple[Floats, Floats]:
        self.check(atoms)
        found = [variable.value(atoms.positions, atoms) for variable in self.members]
        energy, slopes = interpolated(self.first_grid, self.axes, [value for value, _ in found])
        energies, gradient = np.zeros(len(atoms)), np.zeros((len(atoms), 3))
        energies[self.members[0].groups(atoms)[0][0]] = energy
        for slope, (_, of) in zip(slopes, found, strict=True):
            gradient += slope * of
        return energies, gradient

    def launches(self, context: TermContext, index: int) -> list[Launch]:
        queue, encoding, atoms, n = context.queue, context.encoding, context.atoms, len(context.atoms)
        fine = queue.dtype if encoding.is_fixed else np.dtype(np.float64)
        groups = [variable.groups(atoms) for variable in self.members]
        firsts = np.cumsum([0, *(sum(map(len, of)) for of in groups)]).tolist()
        table = [
            (variable.kind, first, len(of[0]), sum(map(len, of)))
            for variable, first, of in zip(self.members, firsts, groups, strict=False)
        ]
        axes = [(axis.n, axis.first, axis.spacing, axis.is_periodic) for axis in self.axes]
        for name, values in self.further_arrays.items():
            context.upload_each(self, name, values, fine)
        items = 1 if queue.device.kind == "CPU" else ITEMS
        arguments = dict(
            n_atoms=n, **context.result_sizes, term=index, step=encoding.step, positions=context.buffers["positions"],
            results=context.buffers["results"], variables=queue.upload(np.array(table), np.int32),
            members=queue.upload(np.concatenate([part for of in groups for part in of]), np.int32),
            traits=queue.upload(np.concatenate([variable.traits(atoms) for variable in self.members]), fine),
            axes=queue.upload(np.array(axes, np.float64), fine),
            grid=context.upload_each(self, "grid", self.first_grid, fine), found=context.buffers[self.found],
        )  # fmt: skip
        return [
            queue.bind(
                "energy/terms/grid_bias.cl", "grid_bias", (items, 1), (items, 1), arguments, GROUP=items,
                N_VARIABLES=len(self.members), **context.macros,
            )
        ]  # fmt: skip

    def _check_array(self, name: str, values: Floats) -> None:
        """Raise InputError for invalid values of a row's array; they are finite."""

    @property
    def further_arrays(self) -> dict[str, Floats]:
        """Initial values of the other arrays of rows, by name."""
        return {}

    def sizes(self, context: TermContext) -> dict[str, int]:
        return {self.found: VARIABLE_REALS}

    @property
    def found(self) -> str:
        """Name of the buffer with the values of the variables, followed by the energy."""
        return f"variables of {self.name}"


@dataclass(frozen=True, eq=False)
class GridBias(Interpolated):
    """Energy of one to three collective variables, interpolated on a grid by cubic polynomials, kcal/mol.

    Beyond the bounds of a variable the energy is constant.

    variables : Variable, or one to three of them
    grid : (n_1, ..., 2^d) for d variables: the energy and its derivatives at each node, kcal/mol. Bit k of the last
        index selects the derivative with respect to variable k, times the spacing of its nodes. None for zero energy,
        to compute only the variables
    bounds : first and last node of each variable; None for torsions, whose nodes begin at -pi
    name : name of the term in results

    `ensemble.values(name, "grid")[row] = grid` sets the grid of a row.
    """

    variables: Variable | Sequence[Variable]
    grid: ArrayLike | None = None
    bounds: Sequence[Range | None] | None = None
    name: str = "bias"

    def __post_init__(self) -> None:
        found = checked_variables(self.variables)
        object.__setattr__(self, "variables", found)
        d = len(found)
        if self.grid is None and self.bounds is None:
            object.__setattr__(self, "bounds", [None if of.period else (0.0, 1.0) for of in found])
        grid = np.zeros((*[2] * d, 1 << d)) if self.grid is None else numbers("grid", self.grid)
        if grid.ndim != d + 1 or grid.shape[-1] != 1 << d or min(grid.shape) < 2 or not np.isfinite(grid).all():
            raise InputError(f"grid has shape {grid.shape}; expected finite numbers ({'n, ' * d}{1 << d})")
        object.__setattr__(self, "grid", read_only(grid, np.float64))
        _ = self.axes

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        every = bounds_of(self.members, self.bounds)
        of_variables = zip(self.members, every, self.first_grid.shape, strict=False)
        return tuple(Axis.of(variable, bounds, n=n) for variable, bounds, n in of_variables)

    @property
    def first_grid(self) -> Floats:
        return np.asarray(self.grid, np.float64)


class Growing(Interpolated):
    """Bias that grows during a simulation, by hills added at the positions of rows.

    grown : name of the array to which hills are added; first_height : height of a hill where the bias is 0
    decay : the height of a hill is multiplied by exp(-decay V / k_B T) where the bias is V
    """

    widths: ArrayLike
    pace: int
    bias_factor: float | None
    bounds: Sequence[Range | None] | None
    spacing: float
    shared: bool
    grown: ClassVar[str] = "grid"

    @property
    @abstractmethod
    def first_height(self) -> float:
        """Height of a hill where the bias is 0."""

    @property
    @abstractmethod
    def decay(self) -> float:
        """Coefficient d in the factor exp(-d V / k_B T) of a hill's height, where V is the bias."""

    def _check_growth(self) -> None:
        """Check the fields common to all growing biases. Raises InputError."""
        found = checked_variables(self.variables)
        object.__setattr__(self, "variables", found)
        widths = np.atleast_1d(numbers("widths", self.widths))
        if widths.shape != (len(found),) or not (np.isfinite(widths) & (widths >= 1e-4)).all():
            raise InputError(
                f"widths are {widths.tolist()}; expected {len(found)} numbers of 0.0001 or more, one per variable"
            )
        for variable, width in zip(found, widths.tolist(), strict=True):
            if variable.period and width > variable.period / 2:
                raise InputError(f"a torsion's width is {width:g}; expected radians, at most pi")
        object.__setattr__(self, "widths", read_only(widths, np.float64))
        whole_number("pace", self.pace, least=1)
        if self.bias_factor is not None:
            number("bias_factor", self.bias_factor, "a number above 1", above=1.0)
        number("spacing", self.spacing, "a number of 0.001 to 0.5", least=0.001, most=0.5)
        flag("shared", self.shared)
        n_nodes = np.prod([axis.n for axis in self.axes])
        if n_nodes > MOST_NODES:
            raise InputError(f"the bias has {n_nodes:,} nodes; use wider hills, or narrower bounds")

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        every, widths = bounds_of(self.members, self.bounds), np.asarray(self.widths).tolist()
        return tuple(
            Axis.of(variable, bounds, self.spacing * width)
            for variable, bounds, width in zip(self.members, every, widths, strict=True)
        )

    @property
    def first_grid(self) -> Floats:
        return np.zeros((*(axis.n for axis in self.axes), 1 << len(self.axes)))


@dataclass(frozen=True, eq=False)
class Metadynamics(Growing):
    """Well-tempered metadynamics: a simulation adds hills to a bias on one to three collective variables.

    Every `pace` steps each replica adds a hill h exp(-sum (s - s0)^2 / 2 widths^2) at its position, with the height h =
    height exp(-V / (k_B T (bias_factor - 1))), where V is the bias at that position and T the temperature of the
    replica's thermostat (Barducci, Bussi and Parrinello, Phys. Rev. Lett. 2008, 100, 020603). Each replica has its own
    grid and hills, or all replicas of a molecule share them (multiple walkers); hills added in the same step do not
    reduce each other's height. Beyond the bounds of a variable the bias is constant.

    variables : Variable, or one to three of them
    widths : widths of the hills along each variable, in its unit
    height : height of the first hill, kcal/mol; pace : steps between hills
    bias_factor : above 1; None for hills of constant height
    bounds : first and last node of each variable; None for torsions
    spacing : distance between nodes, in widths
    shared : whether all replicas of a molecule share one bias; setting the grid of one replica then sets it for all
    name : name of the term in results
    """

    variables: Variable | Sequence[Variable]
    widths: ArrayLike
    height: float
    pace: int
    bias_factor: float | None = 10.0
    bounds: Sequence[Range | None] | None = None
    spacing: float = 0.2
    shared: bool = False
    name: str = "metadynamics"

    def __post_init__(self) -> None:
        number("height", self.height, "a number in kcal/mol, 0 or more", least=0)
        self._check_growth()

    @property
    def first_height(self) -> float:
        return self.height

    @property
    def decay(self) -> float:
        return 0.0 if self.bias_factor is None else 1 / (self.bias_factor - 1)

    def heights(self, energies: Floats, temperatures: Floats) -> Floats:
        """Heights of hills at given bias energies, kcal/mol, and temperatures, K."""
        energies, temperatures = numbers("energies", energies), numbers("temperatures", temperatures)
        if temperatures.shape not in ((), energies.shape):
            raise InputError(f"energies have shape {energies.shape} and temperatures {temperatures.shape}")
        if not (temperatures > 0).all() or not np.isfinite(energies).all():
            raise InputError("expected finite energies and temperatures above 0 K")
        if self.bias_factor is None:
            return np.full(np.shape(energies), float(self.height))
        with np.errstate(over="ignore", under="ignore"):
            found: Floats = self.height * np.exp(-energies / (BOLTZMANN_KCAL * temperatures * (self.bias_factor - 1)))
        return found


def bounds_of(variables: Sequence[Variable], given: Sequence[Range | None] | None) -> Sequence[Range | None]:
    """Return the bounds of each variable. Raises InputError if their number differs."""
    if given is None:
        return [None] * len(variables)
    if not isinstance(given, list | tuple) or len(given) != len(variables):
        n = len(variables)
        raise InputError(f"bounds are {described(given)}; expected a list of {n} pairs of numbers, or None")
    found: list[Range | None] = []
    for of in given:
        pair = np.array([np.nan, np.nan]) if of is None else numbers("bounds", of)
        if pair.shape != (2,):
            raise InputError(f"bounds are {described(of)}; expected two rising numbers")
        found.append(None if of is None else (float(pair[0]), float(pair[1])))
    return found


def interpolated(grid: Floats, axes: Sequence[Axis], values: Sequence[float]) -> tuple[float, Floats]:
    """Interpolate the energy at values of the variables, and its derivatives, (d,)."""
    d = len(axes)
    cells: list[tuple[int, int]] = []
    basis, slope_basis = np.zeros((d, 2, 2)), np.zeros((d, 2, 2))
    for k, (axis, value) in enumerate(zip(axes, values, strict=True)):
        place = (value - axis.first) / axis.spacing
        n = axis.n_cells
        within = place % n if axis.is_periodic else min(max(place, 0.0), float(n))
        cell = min(int(within), n - 1)
        t = within - cell
        cells.append((cell, (cell + 1) % axis.n))
        u, moves = 1 - t, (axis.is_periodic or 0 <= place <= n) / axis.spacing
        basis[k] = [u * u * (1 + 2 * t), t * u * u], [t * t * (1 + 2 * u), -t * t * u]
        slope_basis[k] = [-6 * t * u * moves, u * (u - 2 * t) * moves], [6 * t * u * moves, t * (t - 2 * u) * moves]
    energy, slopes = 0.0, np.zeros(d)
    for corner in product((0, 1), repeat=d):
        node = grid[tuple(cells[k][c] for k, c in enumerate(corner))]
        for bits in product((0, 1), repeat=d):
            value = node[sum(bit << k for k, bit in enumerate(bits))]
            factors = [basis[k, corner[k], bits[k]] for k in range(d)]
            energy += value * np.prod(factors)
            for k in range(d):
                slopes[k] += value * slope_basis[k, corner[k], bits[k]] * np.prod(factors[:k] + factors[k + 1 :])
    return float(energy), slopes


def interpolated_at(grid: Floats, axes: Sequence[Axis], values: Floats) -> Floats:
    """Interpolate the energies (n,) at values of the variables (n, d)."""
    cells, basis = [], []
    for axis, value in zip(axes, values.T, strict=True):
        n, place = axis.n_cells, (value - axis.first) / axis.spacing
        within = place % n if axis.is_periodic else np.clip(place, 0, n)
        cell = np.minimum(within.astype(np.int64), n - 1)
        t = within - cell
        u = 1 - t
        cells.append((cell, (cell + 1) % axis.n))
        basis.append(((u * u * (1 + 2 * t), t * u * u), (t * t * (1 + 2 * u), -t * t * u)))
    energies = np.zeros(len(values))
    for corner in product((0, 1), repeat=len(axes)):
        nodes = grid[tuple(of[c] for of, c in zip(cells, corner, strict=True))]
        for bits in product((0, 1), repeat=len(axes)):
            part = nodes[:, sum(bit << k for k, bit in enumerate(bits))].astype(np.float64)
            for of, c, bit in zip(basis, corner, bits, strict=True):
                part = part * of[c][bit]
            energies += part
    return energies


def hill(axes: Sequence[Axis], center: Sequence[float], widths: Sequence[float]) -> Floats:
    """A Gaussian of height 1 on a grid, with its derivatives, (n_1, ..., 2^d) as in GridBias."""
    d, factors = len(axes), []
    for axis, at, width in zip(axes, center, widths, strict=True):
        away = axis.away(axis.nodes, at)
        gauss = np.exp(-0.5 * (away / width) ** 2)
        factors.append(np.stack([gauss, -away / width**2 * gauss * axis.spacing]))
    found = np.zeros((*(axis.n for axis in axes), 1 << d))
    for bits in product((0, 1), repeat=d):
        part = np.ones(())
        for k, bit in enumerate(bits):
            part = np.multiply.outer(part, factors[k][bit])
        found[..., sum(bit << k for k, bit in enumerate(bits))] = part
    return found
