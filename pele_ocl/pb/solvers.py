"""Linear solvers of a grid's equation in float32, from Jacobi's method to multigrid.

Each computes a correction from the residual; see docs/theory/poisson-boltzmann.md, section 5.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..atoms import Floats
from .launching import Launching, joined
from .multigrid import Multigrid
from .vectors import Vectors

if TYPE_CHECKING:
    from ..opencl.memory import Buffer

JACOBI_SHARE = 0.9  # damping factor of Jacobi's method


class Solver(ABC):
    """Linear solver with its arrays on the device.

    potential : array of wide numbers to add corrections to; None to store them in `solution`
    residual : right-hand side, which the solver overwrites; solution : the correction, or the potential
    can_add : whether the solver can add to a potential
    looks : iterations between checks of the residual's norm
    """

    looks = 1

    can_add = True

    def __init__(self, launching: Launching, multigrid: Multigrid, potential: Buffer | None = None) -> None:
        queue, self.multigrid = launching.queue, multigrid
        size = multigrid.grids[0].size * launching.rows
        self.adds = potential is not None and self.can_add
        self.queue, self.vectors = queue, Vectors(launching, multigrid.grids[0].size, self.adds)
        self.residual = queue.zeros(size)
        self.solution = potential if potential is not None and self.can_add else queue.zeros(size)
        self.further = [queue.zeros(size) for _ in range(self.n_further)]
        self.begin: list[Callable[[], None]] = []
        self.iteration: list[Callable[[], None]] = []
        self.prepare()

    n_further = 2

    @abstractmethod
    def prepare(self) -> None:
        """Create the launches of the start and of an iteration, which must store the residual's sum of squares."""

    def solve(self, goal: float, most: int) -> int:
        """Iterate until the norm of the residual is at most `goal`. Returns the number of iterations.

        The iteration also stops if the norm is not finite.
        """
        self.clear_solution()
        for buffer in self.further:
            self.queue.clear(buffer)
        for launch in self.begin:
            launch()
        for count in range(1, most + 1):
            for launch in self.iteration:
                launch()
            if (count % self.looks == 0 or count == most) and not goal < self.vectors.norm() < math.inf:
                return count
        return most

    def clear_solution(self) -> None:
        """Set the solution to 0, unless it is the potential."""
        if not self.adds:
            self.queue.clear(self.solution)


class Correcting(Solver):
    """Solver that repeatedly adds a correction computed from the residual."""

    def prepare(self) -> None:
        correction, product = self.further
        vectors = self.vectors
        self.begin = [vectors.take_whole_steps]
        self.iteration = [
            *self.correct(self.residual, correction, product), self.multigrid.apply(correction, product),
            *vectors.advance(correction, product, self.solution, self.residual),
        ]  # fmt: skip

    @abstractmethod
    def correct(self, residual: Buffer, correction: Buffer, scratch: Buffer) -> Sequence[Callable[[], None]]:
        """Return the launches that compute the correction."""


class Jacobi(Correcting):
    """Damped Jacobi method."""

    looks = 50

    def correct(self, residual: Buffer, correction: Buffer, scratch: Buffer) -> Sequence[Callable[[], None]]:
        return diagonal(self, residual, correction, JACOBI_SHARE)


class MultigridCycles(Correcting):
    """Multigrid V-cycles without conjugate gradients."""

    def correct(self, residual: Buffer, correction: Buffer, scratch: Buffer) -> Sequence[Callable[[], None]]:
        return self.multigrid.cycle(residual, correction, scratch)


class Overrelaxation(Solver):
    """Red-black successive overrelaxation, with the factor that is optimal for an empty box."""

    looks = 10
    n_further = 1
    can_add = False  # it updates the solution in place

    def prepare(self) -> None:
        (left,) = self.further
        multigrid, vectors = self.multigrid, self.vectors
        share = 2 / (1 + math.sin(math.pi / max(multigrid.grids[0].shape)))
        self.iteration = [multigrid.smooth(0, colour, self.residual, self.solution, share) for colour in (0, 1)]
        self.measure = [
            *(multigrid.find_residual(0, colour, self.residual, self.solution, left) for colour in (0, 1)),
            *vectors.square(left),
        ]

    def solve(self, goal: float, most: int) -> int:
        self.queue.clear(self.solution)
        self.queue.clear(self.further[0])
        for count in range(1, most + 1):
            for launch in self.iteration:
                launch()
            if count % self.looks == 0 or count == most:
                for launch in self.measure:
                    launch()
                if not goal < self.vectors.norm() < math.inf:
                    return count
        return most


class ConjugateGradients(Solver):
    """Conjugate gradients, preconditioned by the diagonal of the operator."""

    looks = 10

    def prepare(self) -> None:
        # The preconditioned residual is used before the product is computed, so they share an array.
        preconditioned, direction = self.further
        product, vectors = preconditioned, self.vectors
        precondition = self.precondition(self.residual, preconditioned)
        self.begin = joined([*precondition, *vectors.start(self.residual, preconditioned, direction)])
        self.iteration = joined([
            self.multigrid.apply(direction, product),
            *vectors.step(direction, product),
            *vectors.advance(direction, product, self.solution, self.residual),
        ])  # fmt: skip
        self.next = joined([*precondition, *vectors.turn(self.residual, preconditioned, direction)])

    def precondition(self, residual: Buffer, values: Buffer) -> Sequence[Callable[[], None]]:
        """Return the launches that apply the preconditioner."""
        return diagonal(self, residual, values, 1.0)

    def solve(self, goal: float, most: int) -> int:
        return int(self.solve_rows(np.array([goal]), most)[0])

    def solve_rows(self, goals: Floats, most: int) -> NDArray[np.integer]:
        """Iterate until the norm of each row's residual is at most its goal; returns the iterations, (rows,).

        A row also stops if its norm is not finite.

        goals : (rows,); inf for rows that must not change
        """
        squares = (goals**2).astype(self.vectors.launching.wide)  # in the precision of the comparison on the device
        self.clear_solution()
        self.vectors.take_goals(squares)
        taken = np.where(np.isinf(goals), 0, most)
        is_going = ~np.isinf(goals)
        for launch in self.begin:
            launch()
        for count in range(1, most + 1):
            for launch in self.iteration:
                launch()
            if count % self.looks == 0 or count == most:
                left = self.vectors.squares()
                has_come = is_going & ~((left > squares) & np.isfinite(left))
                taken[has_come] = count
                is_going &= ~has_come
                if not is_going.any():
                    return taken
            for launch in self.next:
                launch()
        return taken


class MultigridGradients(ConjugateGradients):
    """Conjugate gradients, preconditioned by a V-cycle."""

    looks = 1

    def precondition(self, residual: Buffer, values: Buffer) -> Sequence[Callable[[], None]]:
        finest, rows = self.multigrid.grids[0], self.vectors.launching.rows
        reds = self.queue.zeros((rows - 1) * finest.size + finest.half)
        return self.multigrid.cycle(residual, values, reds)


def diagonal(solver: Solver, residual: Buffer, values: Buffer, share: float) -> Sequence[Callable[[], None]]:
    """Return the launches that divide the residual by the diagonal of the operator. share : factor"""
    relax = [solver.multigrid.relax_by_residual(colour, share, residual, values) for colour in (0, 1)]
    return [lambda: solver.queue.clear(values), *relax]


SOLVERS: Mapping[str, tuple[str, type[Solver]]] = {
    "jacobi": ("each node is updated by its own residual; needs hundreds of iterations per node along an axis", Jacobi),
    "sor": ("red-black Gauss-Seidel with over-relaxation", Overrelaxation),
    "cg": ("conjugate gradients, preconditioned by the diagonal", ConjugateGradients),
    "multigrid": ("only multigrid V-cycles", MultigridCycles),
    "mgcg": ("conjugate gradients, preconditioned by a V-cycle", MultigridGradients),
}
