"""Solutions on the grids of a problem, one after another."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from ..atoms import Floats
from ..common.errors import InputError
from ..grid import Grid
from ..pb_model import PBProblem
from .border import add_border, between_nodes
from .charges import NodeCharges, NodeWeights
from .energies import energy_terms, ions_of_reaction, pressure, total_energy
from .equation import Convergence, Equation, WeightedPotentials, of_row, solve
from .given_maps import charges_on, coefficients_on
from .launching import Launching, NodeValues
from .multigrid import Multigrid
from .probes import Probes, points_wanted, probe_points, probes_of_rows
from .reaction import SingularPart
from .result import PBLevelResult, PBParts
from .rows import SOLVER, solve_rows
from .surface import Coefficients

if TYPE_CHECKING:
    from ..opencl.device import Device

Parent = tuple[Grid, Floats]  # a grid and the potential on it


@dataclass(frozen=True)
class SolverChoice:
    """Choices of a solution.

    reaction : if the singular part is taken out
    solver, tolerance, max_iterations : of PoissonBoltzmann
    parts : if the energy's parts of each grid are wanted, which need all of the potential
    """

    reaction: bool
    solver: str
    tolerance: float
    max_iterations: int
    parts: bool = False


@dataclass(eq=False)
class Geometry:
    """Atoms on the grids, which charges do not change.

    is_kept : whether further charges of the same atoms at the same places come: then grids keep their memory
    probes : until the finest grid has its coefficients
    coefficients, multigrids : of the grids by number, as far as they are kept
    """

    launching: Launching
    is_kept: bool = False
    probes: Probes | None = None
    coefficients: dict[int, Coefficients] = field(default_factory=dict)
    multigrids: dict[int, Multigrid] = field(default_factory=dict)


@dataclass(eq=False)
class Solution:
    """Solution on the finest grid.

    energy, solver_error : kT
    potentials : (n,) kT/e at the atoms, NaN off the grid
    potential : (nz, ny, nx) kT/e, the singular part included; None if it was not wanted
    """

    energy: float
    solver_error: float
    potentials: Floats
    potential: Floats | None
    levels: list[PBLevelResult] = field(default_factory=list)


def solve_grids(
    geometry: Geometry, problem: PBProblem, choice: SolverChoice, seconds: MutableMapping[str, float], keep: bool
) -> Solution:
    """Solve the equation on each grid, whose border has the values of the grid before it.

    geometry : new, or of other charges of the same atoms, grids and model; it keeps what further ones need
    seconds : of steps, to which these are added; keep : if the potential of the finest grid is wanted
    """
    batch = Batch([geometry], [problem], choice, seconds)
    for _ in batch.prepare():
        pass
    return batch.solve(keep)[0]


def can_be_rows(problems: Sequence[PBProblem], choice: SolverChoice, device: Device) -> bool:
    """Return whether problems can be solved in one set of launches: of one model, with grids alike, by "mgcg"."""
    first = problems[0]
    is_able = choice.solver == SOLVER and device.has_float64
    return is_able and all(
        each.model == first.model and len(each.grids) == len(first.grids)
        and all(
            own.shape == other.shape and np.array_equal(own.spacing, other.spacing)
            for own, other in zip(each.grids, first.grids, strict=True)
        )
        for each in problems
    )  # fmt: skip


def nothing() -> None:
    """Do nothing while a device computes."""


@dataclass(eq=False)
class Batch:
    """Problems that are solved at once, each as `solve_grids` does it; several must be such as can_be_rows tells.

    geometries : of the problems; seconds : of steps, to which these are added
    """

    geometries: Sequence[Geometry]
    problems: Sequence[PBProblem]
    choice: SolverChoice
    seconds: MutableMapping[str, float] = field(default_factory=dict)
    _levels: list[Level] = field(default_factory=list, init=False)
    _launchings: list[Launching] = field(default_factory=list, init=False)

    def prepare(self) -> Iterator[None]:
        """Make the equations of the coarsest grids, in steps."""
        yield from self._surfaces()
        for geometry, problem in zip(self.geometries, self.problems, strict=True):
            begun = time.perf_counter()
            if geometry.probes is None and len(geometry.coefficients) < len(problem.grids):
                geometry.probes = probe_points(geometry.launching, problem.solute, problem.rolled)
            self.seconds["surface"] = self.seconds.get("surface", 0) + time.perf_counter() - begun
            self._levels.append(Level(geometry, problem, 0, self.choice, None, self.seconds))
            yield

    def _surfaces(self) -> Iterator[None]:
        """Put all molecules that have one grid each on it in few sets of launches."""
        first, second = self.geometries[0], self.geometries[-1]
        if first is second or first.coefficients or len(self.problems[0].grids) > 1:
            return
        alike = dict[int, list[int]]()  # by the points of a sphere
        for number, problem in enumerate(self.problems):
            alike.setdefault(points_wanted(problem.solute, problem.rolled), []).append(number)
        for numbers in alike.values():
            begun, own = time.perf_counter(), self.geometries[numbers[0]].launching
            launching, problems = Launching(own.queue, len(numbers), own.keeps), [self.problems[k] for k in numbers]
            self._launchings.append(launching)
            # Where lists become too long, each problem is tried alone, and says what is wrong.
            with suppress(InputError):
                probes = probes_of_rows(launching, [each.solute for each in problems], problems[0].rolled)
                grids = [each.grids[0] for each in problems]
                found = coefficients_on(launching, problems, grids, probes)
                for number, each in zip(numbers, found, strict=True):
                    self.geometries[number].coefficients[0] = each
            self.seconds["surface"] = self.seconds.get("surface", 0) + time.perf_counter() - begun
            yield

    def solve(self, keep: bool, meanwhile: Callable[[], None] = nothing) -> list[Solution]:
        """Solve the equations that were made, and the ones of finer grids.

        keep : if the potentials of the finest grids are wanted
        meanwhile : called while the device computes; its seconds do not count
        """
        problems, seconds = self.problems, self.seconds
        around = [np.zeros(3) for _ in problems]
        found: list[list[PBLevelResult]] = [[] for _ in problems]
        last = len(problems[0].grids) - 1
        for number in range(last + 1):
            levels = self._levels
            if len(levels) == 1:
                levels[0].prepare(seconds)
                levels[0].solve(self.choice, seconds)
            else:
                Level.solve_rows(levels, self.choice, seconds, meanwhile)
            for row, level in enumerate(levels):
                with of_row(row):
                    found[row].append(level.result(around[row]))
            if number < last:
                self._levels = []
                for row, (level, geometry) in enumerate(zip(levels, self.geometries, strict=True)):
                    with of_row(row):
                        around[row] = around[row] + level.outside(problems[row].grids[number + 1])
                    parent = level.grid, level.potential
                    self._levels.append(Level(geometry, problems[row], number + 1, self.choice, parent, seconds))
        return [
            Solution(
                of_row[-1].energy_kt, level.solver_error, level.potentials, level.whole_potential() if keep else None,
                of_row,
            )
            for level, of_row in zip(levels, found, strict=True)
        ]  # fmt: skip


class Level:
    """Equation of a problem on one of its grids.

    geometry : with probes; number : of the grid; parent : the grid around this one, or None
    seconds : of steps, which are added to
    """

    def __init__(
        self, geometry: Geometry, problem: PBProblem, number: int, choice: SolverChoice, parent: Parent | None,
        seconds: MutableMapping[str, float],
    ) -> None:  # fmt: skip
        begun, launching, grid = time.perf_counter(), geometry.launching, problem.grids[number]
        reaction, self._wants_parts = choice.reaction, choice.parts
        self.problem, self.grid, self.model = problem, grid, problem.model
        kept = geometry.coefficients.get(number)
        if kept is None:
            assert geometry.probes is not None
            (kept,) = coefficients_on(launching, [problem], [grid], geometry.probes)
        self.coefficients = kept
        if number == len(problem.grids) - 1:
            geometry.probes = None  # their memory is the solver's
        inside = NodeWeights.of(problem, grid)  # while a device may still be at the surface
        # A reaction has the singular part's charges in place of these.
        self.charges = NodeCharges.none() if reaction else charges_on(problem, grid, inside)
        if launching.is_cpu:  # GPUs go on with the surface meanwhile
            launching.queue.finish()
        surface = time.perf_counter()
        self.singular: SingularPart | None = None
        if reaction:
            self.singular = SingularPart(launching, problem, grid, self.coefficients, inside)
            charges = self.singular.charges
        else:
            inner = self.charges.inner(grid.shape)
            charges = NodeValues.of(
                launching, self.charges.nodes[inner], self.charges.charges[inner] * self.model.charge_factor
            )
        self.equation = Equation(launching, self.model, self.coefficients, float(np.prod(grid.spacing)), charges)
        add_border(
            launching, problem, grid, parent, self.equation.colours, self.coefficients.macros, self.equation.potential,
            precise=not reaction,
        )  # fmt: skip
        self._weights = inside if reaction else NodeWeights.of(problem, grid, "on")  # all atoms are inside, too
        self._at_atoms = self._potentials_by(self._weights)
        self._done, self._history = Convergence(), list[float]()
        self._read: Floats | None = None
        seconds["surface"] = seconds.get("surface", 0) + surface - begun
        if geometry.is_kept:
            geometry.coefficients[number] = self.coefficients
        self._geometry, self._number = geometry, number
        launching.let_go()
        seconds["equation"] = seconds.get("equation", 0) + time.perf_counter() - surface

    def prepare(self, seconds: MutableMapping[str, float]) -> None:
        """Make the coarser grids for `solve`, or take the ones that were kept."""
        begun, geometry, number = time.perf_counter(), self._geometry, self._number
        kept = geometry.multigrids.get(number)
        self._multigrid = self.equation.multigrid() if kept is None else kept
        if geometry.is_kept and not self.model.is_nonlinear:  # whose coarser grids' salt goes with the potential
            geometry.multigrids[number] = self._multigrid
        seconds["equation"] = seconds.get("equation", 0) + time.perf_counter() - begun

    def solve(self, choice: SolverChoice, seconds: MutableMapping[str, float]) -> None:
        """Find the potential."""
        begun = time.perf_counter()
        self._done = solve(
            self.equation, self._multigrid, choice.solver, choice.tolerance, choice.max_iterations, self._watch
        )
        self._read_potentials()
        self.equation.launching.let_go()
        seconds["solver"] = seconds.get("solver", 0) + time.perf_counter() - begun

    @staticmethod
    def solve_rows(
        levels: Sequence[Level], choice: SolverChoice, seconds: MutableMapping[str, float],
        meanwhile: Callable[[], None],
    ) -> None:  # fmt: skip
        """Find the potentials of several problems in one set of launches. meanwhile : of Batch.solve"""
        begun = time.perf_counter()

        def elsewhere() -> None:
            nonlocal begun
            left = time.perf_counter()
            meanwhile()
            begun += time.perf_counter() - left

        done = solve_rows(
            [level.equation for level in levels], choice.tolerance, choice.max_iterations,
            lambda row: levels[row]._watch(), elsewhere,
        )  # fmt: skip
        for level, own in zip(levels, done, strict=True):
            level._done = own
            level._read_potentials()
        seconds["solver"] = seconds.get("solver", 0) + time.perf_counter() - begun

    def _read_potentials(self) -> None:
        self.potentials = np.full(len(self.problem.solute.positions), np.nan)
        self.potentials[self._weights.atoms] = self._at_atoms.read()

    def _watch(self) -> None:
        """Keep the energy after a correction."""
        if self.problem.maps.charges is None:
            energy = float(self.problem.solute.charges[self._weights.atoms] @ self._at_atoms.read())
        else:
            energy = self._charges_in_potential()
        self._history.append(0.5 * energy)

    @property
    def potential(self) -> Floats:
        """Solution, (nz, ny, nx) kT/e, read once."""
        if self._read is None:
            self._read = self.equation.on_host()
        return self._read

    @property
    def solver_error(self) -> float:
        """Change of the energy by the last correction, kT."""
        last = [0.0, *self._history][-2:]
        return abs(last[-1] - last[0])

    def whole_potential(self) -> Floats:
        """Add the singular part to the solution, and read it, (nz, ny, nx) kT/e."""
        if self.singular is None:
            return self.potential
        self.singular.add_to(self.equation)
        return self.equation.on_host()

    def energy(self, around: Floats) -> float:
        """Compute the energy, kT. around : (3,) kT, terms outside of the grid"""
        if self.singular is None:
            return total_energy(self._terms(None) + around, self.model)
        charges = self.problem.solute.charges[self._weights.atoms]
        energy = 0.5 * float(charges @ self.potentials[self._weights.atoms])
        if self.model.is_nonlinear and self.coefficients.has_salt:
            of_ions = ions_of_reaction(self.equation, self.grid)
            if np.isnan(of_ions):
                pressure(self.model, self.grid, self.potential, self.coefficients.accesses_on_host())  # says what it is
            energy += of_ions
        return energy

    def outside(self, grid: Grid) -> Floats:
        """Compute the energy's terms outside of a grid within this one, (3,) kT; a reaction has none."""
        return self._terms(grid) if self.singular is None else np.zeros(3)

    def _charges_in_potential(self) -> float:
        """Charges times the potential, kT."""
        if self.problem.has_charges_of_nodes:
            nodes, charges = self.charges.nodes, self.charges.charges
            places = self.equation.colours.index(nodes)[:, None]
            return float(charges @ WeightedPotentials(self.equation, places, np.ones(places.shape)).read())
        if self.model.charges == "spl4":  # APBS interpolates the potential as with "spl0"
            linear = replace(self.problem, model=replace(self.model, charges="spl0"))
            near = NodeWeights.of(linear, self.grid, "on")
            return float(self.problem.solute.charges[near.atoms] @ self._potentials_by(near).read())
        return float(self.problem.solute.charges[self._weights.atoms] @ self.potentials[self._weights.atoms])

    def _potentials_by(self, weights: NodeWeights) -> WeightedPotentials:
        return WeightedPotentials(self.equation, weights.places(self.equation.colours), weights.weights)

    def _terms(self, outside: Grid | None) -> Floats:
        is_whole = self.model.is_nonlinear or self._wants_parts
        if outside is None and not is_whole:  # needs no more of the potential than atoms have
            return np.array([self._charges_in_potential(), 0.0, 0.0])
        edges = self.coefficients.on_host() if is_whole else None
        accesses = self.coefficients.accesses_on_host() if is_whole else None
        return energy_terms(self.problem, self.grid, self.potential, self.charges, edges, accesses, outside)

    def result(self, around: Floats) -> PBLevelResult:
        """Describe the solution. around : (3,) kT, the energy's terms outside of the grid"""
        done = self._done
        residual = done.residuals[-1] if done.residuals else 0.0
        off = self.problem.atoms_off(self.grid)
        parts = self._parts(around) if self._wants_parts else None
        energy = self.energy(around)
        return PBLevelResult(self.grid, energy, done.iterations, done.corrections, residual, off, parts)

    def _parts(self, around: Floats) -> PBParts:
        charged, field_energy, of_ions = self._terms(None) + around
        at_atoms = between_nodes(self.potential, self.grid, self.problem.solute.positions)
        per_atom = 0.5 * self.problem.solute.charges * np.nan_to_num(at_atoms)
        return PBParts(0.5 * charged, field_energy, of_ions, per_atom)
