"""Solution of several equations with equal grid shapes in common launches; each equation is a row.

Results of a row do not depend on the other rows: no sum runs over rows, and each row stops independently.
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

SOLVER = "mgcg"  # supports rows
MOST_NUMBERS = 2**31 - 1  # in an array of all rows, because kernels use 32-bit indices
MOST_NODES = 1 << 26  # in all rows; larger launches are not faster
BYTES = 160  # maximum memory per node, including the equation
MEMORY_SHARE = 4  # rows may use 1/4 of the device's memory
MOST_AT_ONCE = 3  # sets of rows solved concurrently by threads, to keep a GPU busy


def rows_at_once(device: Device, n_nodes: int) -> int:
    """Return the number of problems with `n_nodes` nodes to solve together; 1 on CPUs."""
    if device.kind == "CPU":
        return 1
    return max(1, min(MOST_NODES // n_nodes, device.memory // MEMORY_SHARE // (BYTES * n_nodes)))


def sets_at_once(device: Device, n_nodes: int) -> int:
    """Return the number of sets of rows with `n_nodes` nodes to solve concurrently in free memory; 1 on CPUs."""
    if device.kind == "CPU":
        return 1
    free = max(0, device.memory - device.held_bytes)
    return max(1, min(MOST_AT_ONCE, free * MOST_AT_ONCE // MEMORY_SHARE // (BYTES * n_nodes)))


def most_rows(grid: Grid) -> int:
    """Return the maximum number of problems on a grid for which indices fit 32 bits."""
    return max(1, MOST_NUMBERS // Colours(grid.shape).size)


def solve_rows(
    equation: Equation, tolerance: float, most_iterations: int, watch: Callable[[Sequence[int]], None]
) -> list[Convergence]:
    """Solve the rows of an equation by "mgcg", each with the result of `solve`.

    equation : on a device with float64
    watch : called after each round with the numbers of the corrected rows

    Raises StoppedError if the solver does not converge for a row.
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
        # NaN enters the loop and raises an error. Without charges, ions contribute only rounding errors.
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
    """Apply the corrections of rows, halved in Newton's method until they reduce the residuals; returns the norms."""
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
