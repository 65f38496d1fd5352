"""Solutions on the grids of a problem, one after the other."""

from __future__ import annotations

import time
from collections.abc import MutableMapping
from dataclasses import dataclass, field

import numpy as np

from ..atoms import Floats
from ..grid import Grid
from ..pb_model import PBProblem
from .border import with_border
from .charges import NodeCharges, NodeWeights
from .energies import energy_terms, ions_in_potential, pressure, total_energy
from .equation import Convergence, Equation, PotentialsAtAtoms, solve
from .launching import Launching
from .multigrid import Multigrid
from .probes import Probes, probe_points
from .reaction import SingularPart
from .result import PBLevelResult
from .surface import Coefficients, find_coefficients

Parent = tuple[Grid, Floats]  # a grid and the potential on it


@dataclass(frozen=True)
class SolverChoice:
    """Choices of a solution.

    reaction : if the singular part is taken out
    solver, tolerance, max_iterations : of PoissonBoltzmann
    """

    reaction: bool
    solver: str
    tolerance: float
    max_iterations: int


@dataclass(eq=False)
class Geometry:
    """Atoms on the grids, which charges do not change.

    is_kept : whether further charges of the same atoms at the same places come: then grids keep their memory
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
    begun = time.perf_counter()
    if geometry.probes is None:
        geometry.probes = probe_points(geometry.launching, problem.solute, problem.model)
    seconds["surface"] = seconds.get("surface", 0) + time.perf_counter() - begun
    around, levels = np.zeros(3), list[PBLevelResult]()
    parent: Parent | None = None
    for number, grid in enumerate(problem.grids):
        level = Level(geometry, problem, number, choice.reaction, parent, seconds)
        level.solve(choice, seconds)
        levels.append(level.result(level.energy(around)))
        if number + 1 < len(problem.grids):
            around = around + level.outside(problem.grids[number + 1])
            parent = grid, level.potential
    return Solution(
        levels[-1].energy_kt, level.solver_error, level.potentials, level.whole_potential() if keep else None, levels
    )


class Level:
    """Equation of a problem on one of its grids.

    geometry : with probes; number : of the grid; parent : the grid around this one, or None
    seconds : of steps, which are added to
    """

    def __init__(
        self, geometry: Geometry, problem: PBProblem, number: int, reaction: bool, parent: Parent | None,
        seconds: MutableMapping[str, float],
    ) -> None:  # fmt: skip
        begun, launching, grid = time.perf_counter(), geometry.launching, problem.grids[number]
        assert geometry.probes is not None
        self.problem, self.grid, self.model = problem, grid, problem.model
        kept = geometry.coefficients.get(number)
        self.coefficients = find_coefficients(launching, problem, grid, geometry.probes) if kept is None else kept
        launching.queue.finish()
        surface = time.perf_counter()
        inside = NodeWeights.of(problem, grid)
        self.charges = NodeCharges.of(problem, grid, inside)
        known = with_border(launching, problem, grid, parent, precise=not reaction)
        self.singular: SingularPart | None = None
        if reaction:
            self.singular = SingularPart(launching, problem, grid, self.coefficients, inside)
            nodes, right = self.singular.nodes, self.singular.charges
        else:
            inner = self.charges.inner(grid.shape)
            nodes, right = self.charges.nodes[inner], self.charges.charges[inner] * self.model.charge_factor
        volume = float(np.prod(grid.spacing))
        self.equation = Equation(launching, self.model, self.coefficients, volume, known, nodes, right)
        self._weights = NodeWeights.of(problem, grid, "on")
        self._at_atoms = PotentialsAtAtoms(self.equation, self._weights)
        self._done, self._history = Convergence(), list[float]()
        self._read: Floats | None = None
        seconds["surface"] = seconds.get("surface", 0) + surface - begun
        kept_grids = geometry.multigrids.get(number)
        self._multigrid = self.equation.multigrid() if kept_grids is None else kept_grids
        if geometry.is_kept:
            geometry.coefficients[number] = self.coefficients
            if not self.model.is_nonlinear:  # whose coarser grids' salt goes with the potential
                geometry.multigrids[number] = self._multigrid
        seconds["equation"] = seconds.get("equation", 0) + time.perf_counter() - surface

    def solve(self, choice: SolverChoice, seconds: MutableMapping[str, float]) -> None:
        """Find the potential."""
        begun = time.perf_counter()
        self._done = solve(
            self.equation, self._multigrid, choice.solver, choice.tolerance, choice.max_iterations, self._watch
        )
        self.potentials = np.full(len(self.problem.solute.positions), np.nan)
        self.potentials[self._weights.atoms] = self._at_atoms.read()
        seconds["solver"] = seconds.get("solver", 0) + time.perf_counter() - begun

    def _watch(self) -> None:
        """Keep the energy after a correction."""
        self._history.append(0.5 * float(self.problem.solute.charges[self._weights.atoms] @ self._at_atoms.read()))

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
        if self.model.is_nonlinear:
            accesses = self.coefficients.accesses_on_host()
            energy += ions_in_potential(self.model, self.grid, self.potential, accesses)
            energy -= pressure(self.model, self.grid, self.potential, accesses)
        return energy

    def outside(self, grid: Grid) -> Floats:
        """Compute the energy's terms outside of a grid within this one, (3,) kT; a reaction has none."""
        return self._terms(grid) if self.singular is None else np.zeros(3)

    def _terms(self, outside: Grid | None) -> Floats:
        edges = self.coefficients.on_host() if self.model.is_nonlinear else None
        accesses = self.coefficients.accesses_on_host() if self.model.is_nonlinear else None
        return energy_terms(self.problem, self.grid, self.potential, self.charges, edges, accesses, outside)

    def result(self, energy: float) -> PBLevelResult:
        """Describe the solution. energy : kT"""
        done = self._done
        residual = done.residuals[-1] if done.residuals else 0.0
        off = self.problem.atoms_off(self.grid)
        return PBLevelResult(self.grid, energy, done.iterations, done.corrections, residual, off)
