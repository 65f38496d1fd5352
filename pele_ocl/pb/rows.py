"""Equations of grids of one shape, solved in one set of launches: each is a row.

A row gives the same bits alone and in company: no sum is over rows, and each stops by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..atoms import Floats
from ..grid import Grid
from .colours import Colours
from .equation import (
    ENOUGH,
    ENOUGH_OF_NEWTON,
    LEAST_STEP,
    LINEAR_SHARE,
    MOST_CORRECTIONS,
    MOST_REDUCTION,
    REDUCTION,
    Convergence,
    Equation,
    stages_of,
    stopped,
)
from .launching import Launch
from .solvers import MultigridGradients

if TYPE_CHECKING:
    from ..opencl.device import Device

SOLVER = "mgcg"  # that does rows
MOST_NUMBERS = 2**31 - 1  # of an array of all rows: kernels count them in 32 bits
MOST_NODES = 1 << 26  # of the rows together: larger launches gain nothing
BYTES = 160  # that a node of a row needs at most, together with its equation
MEMORY_SHARE = 4  # part of a device's memory that rows take at most
MOST_AT_ONCE = 3  # sets of rows that threads solve on a GPU: while one waits for the host, the device computes another


def rows_at_once(device: Device, n_nodes: int) -> int:
    """Count the problems with so many nodes that a device solves in one set of launches; CPUs gain nothing: 1."""
    if device.kind == "CPU":
        return 1
    return max(1, min(MOST_NODES // n_nodes, device.memory // MEMORY_SHARE // (BYTES * n_nodes)))


def sets_at_once(device: Device, n_nodes: int) -> int:
    """Count the sets of rows with so many nodes that a device solves concurrently; CPUs gain nothing: 1."""
    if device.kind == "CPU":
        return 1
    return max(1, min(MOST_AT_ONCE, device.memory * MOST_AT_ONCE // MEMORY_SHARE // (BYTES * n_nodes)))


def most_rows(grid: Grid) -> int:
    """Count the problems on a grid whose arrays can be numbered together."""
    return max(1, MOST_NUMBERS // Colours(grid.shape).size)


def solve_rows(
    equation: Equation, tolerance: float, most_iterations: int, watch: Callable[[Sequence[int]], None]
) -> list[Convergence]:
    """Solve the rows of an equation by "mgcg", each as `solve` does it alone; their potentials are the solutions.

    equation : on a device with float64
    watch : called with the numbers of the rows that were corrected, after each round

    Raises StoppedError if the solver of a row does not get there.
    """
    launching, is_nonlinear = equation.launching, equation.model.is_nonlinear
    multigrid = equation.multigrid()
    solver = MultigridGradients(launching, multigrid, None if is_nonlinear else equation.potential)
    done, measure = [Convergence() for _ in range(launching.rows)], solver.vectors.square(solver.residual)
    first: Floats | None = None
    for is_linear, share_wanted, up_to in stages_of(is_nonlinear, tolerance):
        find = equation.find_residual(solver.residual, is_linear, up_to)
        wanted = LINEAR_SHARE if is_linear and is_nonlinear else tolerance

        def norms(find: Sequence[Launch] = find) -> Floats:
            for launch in [*find, *measure]:
                launch()
            found: Floats = np.sqrt(solver.vectors.squares().astype(np.float64))
            return found

        left = norms()
        first = left if first is None else first
        for number in np.flatnonzero(~np.isfinite(first)).tolist():
            raise stopped(SOLVER, done[number], float(first[number]), tolerance, number)
        share_left = np.divide(left, first, out=np.zeros_like(left), where=first != 0)
        # NaN goes on, and is refused; of no charge, ions' rounding alone is left.
        while (is_going := ~(left <= share_wanted * first) & (first != 0)).any():
            going = np.flatnonzero(is_going).tolist()
            for number in going:
                each = done[number]
                is_lost = not np.isfinite(left[number])
                if is_lost or each.corrections == MOST_CORRECTIONS or each.iterations >= most_iterations:
                    raise stopped(SOLVER, each, float(share_left[number]), tolerance, number)
                if not is_linear:
                    equation.linearise(number, False, up_to)
            if not is_linear:
                multigrid.take_salt()
            part = REDUCTION if is_linear else np.clip(share_left, REDUCTION, MOST_REDUCTION)
            goals = np.maximum(part * left, (ENOUGH if is_linear else ENOUGH_OF_NEWTON) * wanted * first)
            most = most_iterations - max(done[number].iterations for number in going)
            taken = solver.solve_rows(np.where(is_going, goals, np.inf), most)
            left = take_corrections(equation, solver, norms, left, is_going, is_linear)
            share_left = np.divide(left, first, out=np.zeros_like(left), where=first != 0)
            for number in going:
                done[number].iterations += int(taken[number])
                done[number].corrections += 1
                done[number].residuals.append(float(share_left[number]))
            watch(going)
    return done


def take_corrections(
    equation: Equation, solver: MultigridGradients, norms: Callable[[], Floats], before: Floats,
    is_going: NDArray[np.bool_], is_linear: bool,
) -> Floats:  # fmt: skip
    """Take the corrections of rows, or the largest shares of Newton's that make residuals smaller; these, by norm."""
    shares = np.ones(len(before))
    if not solver.adds:
        for number in np.flatnonzero(is_going):
            equation.correct(int(number), solver.solution, 1.0)
    left = norms()
    while not is_linear and (is_worse := is_going & (left >= before) & (shares > LEAST_STEP)).any():
        for number in np.flatnonzero(is_worse):
            shares[number] /= 2
            equation.correct(int(number), solver.solution, -float(shares[number]))
        left = norms()
    return np.where(is_going, left, before)
