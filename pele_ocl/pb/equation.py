"""Poisson-Boltzmann equation of a grid on a device, solved by float32 corrections to a potential in wide numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..atoms import Floats
from ..common.errors import PeleError
from ..pb_model import PBModel
from .charges import NodeWeights
from .launching import Launch, Launching, NodeValues
from .multigrid import Multigrid
from .solvers import SOLVERS, Solver
from .surface import Coefficients

if TYPE_CHECKING:
    from ..opencl.memory import Buffer

MOST_CORRECTIONS = 300  # for large potentials, Newton's method needs a step per kT
REDUCTION = 1e-4  # of the residual per correction; limited by float32
MOST_REDUCTION = 1e-2  # of the residual per correction, far from the solution of the nonlinear equation
ENOUGH = 0.5  # fraction of the requested residual at which the linear solver stops
ENOUGH_OF_NEWTON = 0.1  # the same for the nonlinear equation
LINEAR_SHARE = 1e-3  # fraction of the initial residual at which the nonlinear equation replaces the linear one
LEAST_STEP = 1e-3  # smallest fraction of a Newton step
LARGEST_EXPONENT = 85  # of the Boltzmann factor of an ion
# The nonlinear equation is solved in stages, with exponentials continued linearly above these exponents. If no exponent
# is larger, the solution also solves the next stage.
STAGES = (4.0, 8.0, 16.0, 32.0)
STAGE_SHARE = 1e-2  # fraction of the initial residual at which a stage ends


class Equation:
    """Discretized equation on a grid. The potential is initially 0, and its boundary values are not changed.

    launching : its rows are problems with the same model, grid shape and spacing
    coefficients : of all rows, stored one after another
    charges : of inner nodes, times the model's charge factor
    """

    def __init__(
        self, launching: Launching, model: PBModel, coefficients: Coefficients, volume: float, charges: NodeValues
    ) -> None:
        queue, colours = launching.queue, coefficients.colours
        self.launching, self.model, self.coefficients, self.colours = launching, model, coefficients, colours
        size = launching.rows * colours.size
        self.potential = queue.zeros(size, launching.wide)
        # In the linear equation the salt term is the accessibility times a constant, so its codes suffice.
        self.is_salt_coded = coefficients.is_coded and not model.is_nonlinear
        self.salt_factor = model.screening * volume
        self.salt = queue.zeros(size if coefficients.has_salt and not self.is_salt_coded else 1)
        shares = [0.5 * ion.concentration / model.ionic_strength for ion in model.ions] if model.has_salt else []
        pairs = [(ion.charge, share) for ion, share in zip(model.ions, shares, strict=bool(shares))]
        self.salt_arguments: dict[str, Any] = {
            "salt_factor": self.salt_factor, "accesses": coefficients.accesses,
            "ions": queue.send(np.array(pairs or [(0.0, 0.0)]), launching.wide),
        }  # fmt: skip
        self._charges = charges

    def macros(self, is_linear: bool) -> dict[str, int]:
        """Return the macros for kernels of the equation."""
        if is_linear or not self.model.is_nonlinear:
            return {**self.coefficients.macros, "N_IONS": 0}
        return {**self.coefficients.macros, "N_IONS": len(self.model.ions)}

    def find_residual(self, residual: Buffer, is_linear: bool, up_to: float = LARGEST_EXPONENT) -> list[Launch]:
        """Return the launches that compute the residual.

        up_to : exponent above which exponentials are continued linearly
        """
        macros = self.macros(is_linear)
        common = {
            "grid": self.colours, **self.coefficients.wide_arguments, **self.salt_arguments,
            "exponential_up_to": float(up_to), "potential": self.potential, "lacks": residual,
        }  # fmt: skip
        launches = [self.launching.over_nodes("pb/outer.cl", "find_lacking", self.colours, macros, **common)]
        charges = self._charges
        if charges.count:
            launches.append(
                self.launching.over_lists(
                    "pb/outer.cl", "find_lacking_at", max(charges.counts), macros, **common, ranges=charges.ranges,
                    charged=charges.nodes, charges=charges.values,
                )
            )  # fmt: skip
        return launches

    def linearise(self, number: int, is_linear: bool, up_to: float = LARGEST_EXPONENT) -> None:
        """Compute the salt term of the operator at the potential of a row. up_to : as in find_residual"""
        self._over_row(
            number, "linearise", self.macros(is_linear), **self.salt_arguments, exponential_up_to=float(up_to),
            potential=self.potential, salt=self.salt,
        )  # fmt: skip

    def _over_row(self, number: int, kernel: str, macros: dict[str, int], **values: Any) -> None:
        """Launch a kernel over the nodes of one row."""
        grid = self.colours.of_row(number)
        self.launching.alone.over_nodes("pb/outer.cl", kernel, grid, macros, grid=grid, **values)()

    def multigrid(self) -> Multigrid:
        """Create the coarser grids of the linear equation."""
        if self.is_salt_coded and self.coefficients.has_salt:
            return Multigrid(self.launching, self.coefficients, self.coefficients.accesses, self.salt_factor)
        if self.coefficients.has_salt:
            for number in range(self.launching.rows):
                self.linearise(number, True)
        return Multigrid(self.launching, self.coefficients, self.salt)

    def correct(self, number: int, correction: Buffer, share: float) -> None:
        """Add a multiple, `share`, of a correction to the potential of a row."""
        macros = self.macros(True)
        self._over_row(number, "correct", macros, share=share, correction=correction, potential=self.potential)

    def on_host(self, number: int = 0) -> Floats:
        """Read the potential of a row, (nz, ny, nx) kT/e."""
        grid, values = self.colours.of_row(number), np.empty(self.colours.size, self.launching.wide)
        self.launching.queue.read(values, self.potential, grid.first)
        return grid.merge(values).astype(np.float64)


class WeightedPotentials:
    """Weighted sums of the potential over nodes, which can be read during the solution.

    places : for each row (m, w), indices of nodes in red-black arrays; weights : for each row (m, w)
    """

    def __init__(self, equation: Equation, places: Sequence[NDArray[np.integer]], weights: Sequence[Floats]) -> None:
        launching, self._ends = equation.launching, np.cumsum([len(each) for each in weights])
        queue, all_weights = launching.queue, np.concatenate(weights)
        count, each = all_weights.shape
        self._found, self._count, self._launching = queue.empty(count, launching.wide), count, launching
        self._launch = launching.over_list(
            "pb/weights.cl", "sum_weighted", max(count, 1), equation.macros(True), n_atoms=count, n_nodes=each,
            nodes=queue.send(np.concatenate(places), np.uint32), weights=queue.send(all_weights, launching.wide),
            potential=equation.potential, found=self._found,
        )  # fmt: skip

    @classmethod
    def of(cls, equation: Equation, weights: Sequence[NodeWeights]) -> WeightedPotentials:
        """Return the sums that interpolate the potential at atoms. weights : for each row"""
        places = [each.places(equation.colours.of_row(row)) for row, each in enumerate(weights)]
        return cls(equation, places, [each.weights for each in weights])

    def read(self) -> list[Floats]:
        """Return the sums of each row, (m,) kT/e."""
        values = np.zeros(0, self._launching.wide)
        if self._count:
            self._launch()
            values = self._launching.queue.download(self._found, self._count, self._launching.wide)
        return np.split(values.astype(np.float64), self._ends[:-1])


@dataclass(eq=False)
class Convergence:
    """Convergence history of a solution.

    iterations : total number for the linear solver; corrections : number of float32 corrections or Newton steps
    residuals : relative norm after each correction, recomputed in wide numbers
    """

    iterations: int = 0
    corrections: int = 0
    residuals: list[float] = field(default_factory=list)


def solve(
    equation: Equation, multigrid: Multigrid, solver_name: str, tolerance: float, most_iterations: int,
    watch: Callable[[], None] = lambda: None,
) -> Convergence:  # fmt: skip
    """Solve an equation until the residual is at most `tolerance` times that of the initial potential.

    multigrid : from equation.multigrid, or of another linear equation with the same coefficients
    watch : called after each correction

    Raises StoppedError if the solver does not converge.
    """
    launching, queue, done = equation.launching, equation.launching.queue, Convergence()
    is_nonlinear = equation.model.is_nonlinear
    # Not for Newton's method, which may reduce corrections, nor in float32, where each addition would be rounded.
    at_once = not is_nonlinear and launching.wide == np.float64
    solver = SOLVERS[solver_name][1](launching, multigrid, equation.potential if at_once else None)
    measure = solver.vectors.square(solver.residual)
    queue.clear(solver.residual)

    def norm(launches: list[Launch]) -> float:
        for launch in [*launches, *measure]:
            launch()
        return solver.vectors.norm()

    first: float | None = None
    for is_linear, share_wanted, up_to in stages_of(is_nonlinear, tolerance):
        find = equation.find_residual(solver.residual, is_linear, up_to)
        left = norm(find)
        first = left if first is None else first
        if not math.isfinite(first):
            raise stopped(solver_name, done, first, tolerance)
        if not first:  # no charges: ions contribute only rounding errors
            return done
        wanted = LINEAR_SHARE if is_linear and is_nonlinear else tolerance
        while not left <= share_wanted * first:  # NaN enters the loop and raises an error
            if not math.isfinite(left) or done.corrections == MOST_CORRECTIONS or done.iterations >= most_iterations:
                raise stopped(solver_name, done, left / first, tolerance)
            if not is_linear:
                equation.linearise(0, is_linear, up_to)
                multigrid.take_salt()
            share = REDUCTION if is_linear else max(REDUCTION, min(MOST_REDUCTION, left / first))
            goal = max(share * left, (ENOUGH if is_linear else ENOUGH_OF_NEWTON) * wanted * first)
            done.iterations += solver.solve(goal, most_iterations - done.iterations)
            left = _take(equation, solver, lambda: norm(find), left, is_linear)  # noqa: B023
            done.corrections += 1
            done.residuals.append(left / first)
            watch()
    return done


def stages_of(is_nonlinear: bool, tolerance: float) -> list[tuple[bool, float, float]]:
    """Return the stages of a solution: whether the equation is linear, the relative residual to reach, and up_to."""
    if not is_nonlinear:
        return [(True, tolerance, LARGEST_EXPONENT)]
    between = [(False, max(STAGE_SHARE, tolerance), up_to) for up_to in STAGES]
    return [(True, LINEAR_SHARE, LARGEST_EXPONENT), *between, (False, tolerance, LARGEST_EXPONENT)]


def _take(equation: Equation, solver: Solver, norm: Callable[[], float], before: float, is_linear: bool) -> float:
    """Apply a correction, halved in Newton's method until it reduces the residual; returns the norm of the residual."""
    share = 1.0
    if not solver.adds:
        equation.correct(0, solver.solution, share)
    left = norm()
    while not is_linear and left >= before and share > LEAST_STEP:
        share /= 2
        equation.correct(0, solver.solution, -share)
        left = norm()
    return left


class StoppedError(PeleError):
    """Error of a solver that did not converge. row : of the problem in its batch"""

    def __init__(self, message: str, row: int = 0) -> None:
        super().__init__(message)
        self.row = row


@contextmanager
def of_row(row: int) -> Iterator[None]:
    """Set the row in errors raised within the block."""
    try:
        yield
    except StoppedError as error:
        error.row = row
        raise


def stopped(solver: str, done: Convergence, reached: float, tolerance: float, row: int = 0) -> StoppedError:
    """Return the error for a solver that did not converge."""
    if not math.isfinite(reached):
        return StoppedError(
            f"the solver {solver} diverged to numbers that are not finite after {done.iterations:,} iterations: the "
            "potential is too large; check charges, radii and dielectric constants", row
        )  # fmt: skip
    return StoppedError(
        f"the solver {solver} stopped after {done.iterations:,} iterations with a relative residual of {reached:.1e}, "
        f"but {tolerance:.1e} is required; choose a larger tolerance, more iterations or the solver mgcg", row
    )  # fmt: skip
