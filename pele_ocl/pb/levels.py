"""Solution of problems on a sequence of grids."""

from __future__ import annotations

import time
from collections.abc import MutableMapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

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
from .surface import Coefficients, coefficients_of_rows, joined

if TYPE_CHECKING:
    from ..opencl.device import Device

Parent = tuple[Grid, Floats]  # grid with its potential


@dataclass(frozen=True)
class SolverChoice:
    """Options of the solver.

    reaction : whether to remove the singular part
    solver, tolerance, max_iterations : as in PoissonBoltzmann
    parts : whether to compute the parts of the energy on each grid, which requires reading the whole potential
    """

    reaction: bool
    solver: str
    tolerance: float
    max_iterations: int
    parts: bool = False


@dataclass(eq=False)
class Geometry:
    """Data that depends on atoms and grids, but not on charges.

    is_kept : whether to keep the data of the grids for other charges of the same atoms at the same positions
    probes : None once the coefficients of the finest grid are computed
    coefficients, multigrids : cached by grid number
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
    potential : (nz, ny, nx) kT/e, including the singular part; None if not requested
    """

    energy: float
    solver_error: float
    potentials: Floats
    potential: Floats | None
    levels: list[PBLevelResult] = field(default_factory=list)


def solve_grids(
    geometry: Geometry, problem: PBProblem, choice: SolverChoice, seconds: MutableMapping[str, float], keep: bool
) -> Solution:
    """Solve the equation on each grid, with boundary values from the previous grid.

    geometry : new, or from a previous call with other charges of the same atoms, grids and model
    seconds : times by step, to which new times are added; keep : whether to return the potential of the finest grid
    """
    return Batch([geometry], [problem], choice, seconds).solve(keep)[0]


def can_be_rows(problems: Sequence[PBProblem], choice: SolverChoice, device: Device) -> bool:
    """Return whether problems can be solved together.

    This requires the same model, equal grid shapes and spacings, the solver "mgcg" and float64.
    """
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


@dataclass(eq=False)
class Batch:
    """Problems that are solved together, each with the result of `solve_grids`; several must satisfy `can_be_rows`.

    geometries : of the problems; seconds : times by step, to which new times are added
    """

    geometries: Sequence[Geometry]
    problems: Sequence[PBProblem]
    choice: SolverChoice
    seconds: MutableMapping[str, float] = field(default_factory=dict)

    def solve(self, keep: bool) -> list[Solution]:
        """Create and solve the equations, starting with the coarsest grids.

        keep : whether to return the potentials of the finest grids
        """
        problems, seconds = self.problems, self.seconds
        around = [np.zeros(3) for _ in problems]
        found: list[list[PBLevelResult]] = [[] for _ in problems]
        last, parents = len(problems[0].grids) - 1, None
        for number in range(last + 1):
            levels = self._make(number, parents)
            if len(levels) == 1:
                levels[0].prepare(seconds)
                levels[0].solve(self.choice, seconds)
            else:
                Level.solve_rows(levels, self.choice, seconds)
            for row, level in enumerate(levels):
                with of_row(row):
                    found[row].append(level.result(around[row]))
            if number < last:
                parents = []
                for row, level in enumerate(levels):
                    with of_row(row):
                        around[row] = around[row] + level.outside(problems[row].grids[number + 1])
                    parents.append((level.grid, level.potential))
        made = levels[0].made
        if keep and made.singular is not None:
            made.singular.add_to(made.equation)
        return [
            Solution(
                of_row[-1].energy_kt, level.solver_error, level.potentials, level.whole_potential() if keep else None,
                of_row,
            )
            for level, of_row in zip(levels, found, strict=True)
        ]  # fmt: skip

    def _make(self, number: int, parents: Sequence[Parent] | None) -> list[Level]:
        """Create the equation on one grid of each problem.

        number : of the grid, the coarsest is 0; parents : the coarser grids with potentials, None for the coarsest
        """
        problems, seconds, is_reaction = self.problems, self.seconds, self.choice.reaction
        grids, model, launching = [each.grids[number] for each in problems], problems[0].model, self._launching()
        begun = time.perf_counter()
        coefficients = self._coefficients(launching, number, grids)
        # Computed while the device may still compute the surface.
        inside = list[NodeWeights]()
        for problem, grid in zip(problems, grids, strict=True):
            inside.append(NodeWeights.of(problem, grid))
            launching.queue.offer_turn()
        # The reaction field uses the charges of the singular part instead.
        charges = [
            NodeCharges.none() if is_reaction else charges_on(*each)
            for each in zip(problems, grids, inside, strict=True)
        ]
        if launching.is_cpu:  # GPUs continue with the surface
            launching.queue.finish()
        surface = time.perf_counter()
        seconds["surface"] = seconds.get("surface", 0) + surface - begun
        singular = SingularPart(launching, problems, grids, coefficients, inside) if is_reaction else None
        if singular is not None:
            on_device = singular.charges
        else:
            inner = [each.inner(grid.shape) for each, grid in zip(charges, grids, strict=True)]
            on_device = NodeValues.of_rows(
                launching, [each.nodes[taken] for each, taken in zip(charges, inner, strict=True)],
                [each.charges[taken] * model.charge_factor for each, taken in zip(charges, inner, strict=True)],
            )  # fmt: skip
        equation = Equation(launching, model, coefficients, float(np.prod(grids[0].spacing)), on_device)
        add_border(
            launching, problems, grids, parents, equation.colours, coefficients.macros, equation.potential,
            precise=not is_reaction,
        )  # fmt: skip
        weights = inside  # for the reaction field, all atoms are inside
        if not is_reaction:
            weights = [NodeWeights.of(*each, "on") for each in zip(problems, grids, strict=True)]
        made = Made(equation, singular, WeightedPotentials.of(equation, weights))
        levels = [
            Level(made, row, problem, self.geometries[row], number, self.choice, charges[row], weights[row])
            for row, problem in enumerate(problems)
        ]  # fmt: skip
        launching.let_go()
        seconds["equation"] = seconds.get("equation", 0) + time.perf_counter() - surface
        return levels

    def _launching(self) -> Launching:
        """Return the Launching of all problems; for a single problem, that of its geometry."""
        first, rows = self.geometries[0].launching, len(self.problems)
        return first if rows == 1 else Launching(first.queue, rows, first.keeps)

    def _have_surface_in_rows(self) -> bool:
        """Return whether the surfaces of all problems can be computed together.

        Not for several sets of charges of the same atoms, which share one surface, and not for several grids, because
        the probes are then kept by the geometries.
        """
        problems, geometries = self.problems, self.geometries
        return (
            len(problems) > 1
            and geometries[0] is not geometries[-1]
            and len(problems[0].grids) == 1
            and len({points_wanted(each.solute, each.rolled) for each in problems}) == 1
            and not any(each.maps.dielectrics or each.maps.access for each in problems)
        )

    def _coefficients(self, launching: Launching, number: int, grids: Sequence[Grid]) -> Coefficients:
        """Compute the coefficients of one grid of each problem, or return cached ones. number : as in _make"""
        problems = self.problems
        if self._have_surface_in_rows():
            # If the lists become too long, problems are computed one by one, so that errors identify the problem.
            with suppress(InputError):
                probes = probes_of_rows(launching, [each.solute for each in problems], problems[0].rolled)
                return coefficients_of_rows(launching, problems, grids, probes)
        is_last, found = number == len(problems[0].grids) - 1, []
        for geometry, problem, grid in zip(self.geometries, problems, grids, strict=True):
            kept = geometry.coefficients.get(number)
            if kept is None:
                if geometry.probes is None:
                    geometry.probes = probe_points(geometry.launching, problem.solute, problem.rolled)
                kept = coefficients_on(geometry.launching, problem, grid, geometry.probes)
            if is_last:
                geometry.probes = None  # frees memory for the solver
            if geometry.is_kept:
                geometry.coefficients[number] = kept
            found.append(kept)
        return joined(launching, found)


@dataclass(frozen=True, eq=False)
class Made:
    """Equation of all problems of a batch on one grid each.

    singular : for the reaction field, else None; at_atoms : potentials at the atoms of each problem
    """

    equation: Equation
    singular: SingularPart | None
    at_atoms: WeightedPotentials


class Level:
    """One problem on one of its grids.

    made : equation of the batch; row : of the problem; number : of the grid
    charges : of nodes, empty for the reaction field; weights : of nodes for potentials at the atoms
    """

    def __init__(
        self, made: Made, row: int, problem: PBProblem, geometry: Geometry, number: int, choice: SolverChoice,
        charges: NodeCharges, weights: NodeWeights,
    ) -> None:  # fmt: skip
        self.made, self.row, self.problem, self.charges = made, row, problem, charges
        self.grid, self.model, self.equation = problem.grids[number], problem.model, made.equation
        self.coefficients = self.equation.coefficients.of_row(row)
        self._weights, self._wants_parts, self._is_reaction = weights, choice.parts, choice.reaction
        self._done, self._history = Convergence(), list[float]()
        self._read: Floats | None = None
        self._geometry, self._number = geometry, number

    def prepare(self, seconds: MutableMapping[str, float]) -> None:
        """Create the coarser grids for `solve`, or reuse cached ones."""
        begun, geometry, number = time.perf_counter(), self._geometry, self._number
        kept = geometry.multigrids.get(number)
        self._multigrid = self.equation.multigrid() if kept is None else kept
        if geometry.is_kept and not self.model.is_nonlinear:  # otherwise salt varies
            geometry.multigrids[number] = self._multigrid
        seconds["equation"] = seconds.get("equation", 0) + time.perf_counter() - begun

    def solve(self, choice: SolverChoice, seconds: MutableMapping[str, float]) -> None:
        """Solve for the potential."""
        begun = time.perf_counter()
        self._done = solve(
            self.equation, self._multigrid, choice.solver, choice.tolerance, choice.max_iterations,
            lambda: self._watch(self.made.at_atoms.read()),
        )  # fmt: skip
        self._take_potentials(self.made.at_atoms.read())
        self.equation.launching.let_go()
        seconds["solver"] = seconds.get("solver", 0) + time.perf_counter() - begun

    @staticmethod
    def solve_rows(levels: Sequence[Level], choice: SolverChoice, seconds: MutableMapping[str, float]) -> None:
        """Solve several problems together."""
        begun, made = time.perf_counter(), levels[0].made

        def watch(rows: Sequence[int]) -> None:
            potentials = made.at_atoms.read()
            for row in rows:
                levels[row]._watch(potentials)

        done = solve_rows(made.equation, choice.tolerance, choice.max_iterations, watch)
        potentials = made.at_atoms.read()
        for level, own in zip(levels, done, strict=True):
            level._done = own
            level._take_potentials(potentials)
        seconds["solver"] = seconds.get("solver", 0) + time.perf_counter() - begun

    def _take_potentials(self, potentials: Sequence[Floats]) -> None:
        """Store the potentials at the atoms. potentials : of all rows"""
        self.potentials = np.full(len(self.problem.solute.positions), np.nan)
        self.potentials[self._weights.atoms] = potentials[self.row]

    def _watch(self, potentials: Sequence[Floats]) -> None:
        """Record the energy after a correction. potentials : at the atoms of all rows"""
        if self.problem.maps.charges is None:
            energy = float(self.problem.solute.charges[self._weights.atoms] @ potentials[self.row])
        else:
            energy = self._charges_in_potential()
        self._history.append(0.5 * energy)

    @property
    def potential(self) -> Floats:
        """Solution, (nz, ny, nx) kT/e; read on first use."""
        if self._read is None:
            self._read = self.equation.on_host(self.row)
        return self._read

    @property
    def solver_error(self) -> float:
        """Change of the energy in the last correction, kT."""
        last = [0.0, *self._history][-2:]
        return abs(last[-1] - last[0])

    def whole_potential(self) -> Floats:
        """Return the potential including the singular part, which the batch must have added, (nz, ny, nx) kT/e."""
        return self.equation.on_host(self.row) if self._is_reaction else self.potential

    def energy(self, around: Floats) -> float:
        """Return the energy, kT. around : (3,) kT, energy terms from outside of the grid"""
        if not self._is_reaction:
            return total_energy(self._terms(None) + around, self.model)
        charges = self.problem.solute.charges[self._weights.atoms]
        energy = 0.5 * float(charges @ self.potentials[self._weights.atoms])
        if self.model.is_nonlinear and self.coefficients.has_salt:
            of_ions = ions_of_reaction(self.equation, self.grid, self.row)
            if np.isnan(of_ions):
                pressure(self.model, self.grid, self.potential, self.coefficients.accesses_on_host())  # StoppedError
            energy += of_ions
        return energy

    def outside(self, grid: Grid) -> Floats:
        """Return the energy terms outside of an inner grid, (3,) kT; 0 for the reaction field."""
        return np.zeros(3) if self._is_reaction else self._terms(grid)

    def _charges_in_potential(self) -> float:
        """Return the sum of charges times potential, kT."""
        if self.problem.has_charges_of_nodes:
            nodes, charges = self.charges.nodes, self.charges.charges
            places = self.equation.colours.of_row(self.row).index(nodes)[:, None]
            return float(charges @ self._potentials_at(places, np.ones(places.shape)))
        if self.model.charges == "spl4":  # APBS interpolates the potential as with "spl0"
            linear = replace(self.problem, model=replace(self.model, charges="spl0"))
            near = NodeWeights.of(linear, self.grid, "on")
            places = near.places(self.equation.colours.of_row(self.row))
            return float(self.problem.solute.charges[near.atoms] @ self._potentials_at(places, near.weights))
        return float(self.problem.solute.charges[self._weights.atoms] @ self.potentials[self._weights.atoms])

    def _potentials_at(self, places: NDArray[np.integer], weights: Floats) -> Floats:
        """Return weighted sums of the potential, (m,) kT/e. places, weights : (m, w), as in WeightedPotentials"""
        return WeightedPotentials(self.equation, [places], [weights]).read()[0]

    def _terms(self, outside: Grid | None) -> Floats:
        is_whole = self.model.is_nonlinear or self._wants_parts
        if outside is None and not is_whole:  # needs only the potentials at the atoms
            return np.array([self._charges_in_potential(), 0.0, 0.0])
        edges = self.coefficients.on_host() if is_whole else None
        accesses = self.coefficients.accesses_on_host() if is_whole else None
        return energy_terms(self.problem, self.grid, self.potential, self.charges, edges, accesses, outside)

    def result(self, around: Floats) -> PBLevelResult:
        """Return the result on this grid. around : (3,) kT, energy terms from outside of the grid"""
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
