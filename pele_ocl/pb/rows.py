"""Linear equations of grids of one shape, solved in one set of launches: each is a row.

A row gives the same bits alone and in company: no sum is over rows, and each stops by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..atoms import Floats
from ..grid import Grid
from .colours import Colours
from .equation import ENOUGH, MOST_CORRECTIONS, REDUCTION, Convergence, Equation, stopped
from .launching import Launch, Launching
from .multigrid import Multigrid
from .solvers import MultigridGradients
from .surface import Coefficients

if TYPE_CHECKING:
    from ..opencl.device import Device
    from ..opencl.memory import Buffer

SOLVER = "mgcg"  # that does rows
MOST_NUMBERS = 2**31 - 1  # of an array of all rows: kernels count them in 32 bits
MOST_NODES = 1 << 26  # of the rows together: larger launches gain nothing
BYTES = 160  # that a node of a row needs at most, together with its equation
MEMORY_SHARE = 4  # part of a device's memory that rows take at most: the next ones are made while these are solved


def rows_at_once(device: Device, n_nodes: int) -> int:
    """Count the problems with so many nodes that a device solves in one set of launches; CPUs gain nothing: 1."""
    if device.kind == "CPU":
        return 1
    return max(1, min(MOST_NODES // n_nodes, device.memory // MEMORY_SHARE // (BYTES * n_nodes)))


def most_rows(grid: Grid) -> int:
    """Count the problems on a grid whose arrays can be numbered together."""
    return max(1, MOST_NUMBERS // Colours(grid.shape).size)


class Rows:
    """Equations of one model on grids of one shape and spacing, whose arrays follow each other."""

    def __init__(self, equations: Sequence[Equation]) -> None:
        first, queue = equations[0], equations[0].launching.queue
        self.equations = equations
        self.launching = Launching(queue, len(equations))
        self.colours = replace(first.colours, stride=first.colours.size)
        self.coefficients = self._coefficients()
        self.potential = self._joined([each.potential for each in equations])

    def _joined(self, buffers: Sequence[Buffer]) -> Buffer:
        """Copy a buffer of each row into one."""
        queue, kind = self.launching.queue, buffers[0].dtype
        joined = queue.empty(sum(each.size for each in buffers) // kind.itemsize, kind)
        for number, each in enumerate(buffers):
            queue.copy_bytes(each, 0, joined, number * each.size, each.size)
        return joined

    def _coefficients(self) -> Coefficients:
        of_rows = [each.coefficients for each in self.equations]
        edges = tuple(self._joined([each.edges[axis] for each in of_rows]) for axis in range(3))
        narrow = edges
        if not of_rows[0].is_coded:
            narrow = tuple(self._joined([each.narrow[axis] for each in of_rows]) for axis in range(3))
        accesses = self._joined([each.accesses for each in of_rows])
        return replace(
            of_rows[0], launching=self.launching, colours=self.colours, edges=edges, narrow=narrow, accesses=accesses
        )

    def multigrid(self) -> Multigrid:
        """Make the coarser grids of all rows."""
        first = self.equations[0]
        if first.is_salt_coded and self.coefficients.has_salt:
            return Multigrid(self.launching, self.coefficients, self.coefficients.accesses, first.salt_factor)
        if self.coefficients.has_salt:
            for each in self.equations:
                each.linearise(True)()
        return Multigrid(self.launching, self.coefficients, self._joined([each.salt for each in self.equations]))

    def find_residual(self, residual: Buffer) -> list[Launch]:
        """Launches that find what the equations lack."""
        first = self.equations[0]
        common = {
            **self.coefficients.wide_arguments, **first.salt_arguments, "accesses": self.coefficients.accesses,
            "potential": self.potential, "lacks": residual,
        }  # fmt: skip
        launches = [
            self.launching.over_nodes(
                "pb/outer.cl", "find_lacking", self.colours, first.macros(True), grid=self.colours, **common
            )
        ]
        for number, each in enumerate(self.equations):
            if count := int(each.charged["n_charged"]):
                own = replace(self.colours, first=number * self.colours.stride)
                launches.append(
                    self.launching.over_list(
                        "pb/outer.cl", "find_lacking_at", count, first.macros(True), grid=own, **common, **each.charged
                    )
                )
        return launches

    def give_back(self) -> None:
        """Copy the potentials of the rows to their equations."""
        queue = self.launching.queue
        for number, each in enumerate(self.equations):
            queue.copy_bytes(self.potential, number * each.potential.size, each.potential, 0, each.potential.size)


def solve_rows(
    equations: Sequence[Equation], tolerance: float, most_iterations: int, watch: Callable[[int], None],
    meanwhile: Callable[[], None],
) -> list[Convergence]:  # fmt: skip
    """Solve linear equations by "mgcg", each as `solve` does it alone; their potentials are the solutions.

    equations : of one model, on grids of one shape and spacing; on a device with float64
    watch : called with the number of an equation after each of its corrections
    meanwhile : called while the device does an iteration

    Raises PeleError where the solver does not get there.
    """
    rows = Rows(equations)
    solver = MultigridGradients(rows.launching, rows.multigrid(), rows.potential)
    find, done = rows.find_residual(solver.residual), [Convergence() for _ in equations]
    measure = solver.vectors.square(solver.residual)

    def norms() -> Floats:
        for launch in [*find, *measure]:
            launch()
        found: Floats = np.sqrt(np.maximum(solver.vectors.squares().astype(np.float64), 0.0))
        return found

    left = first = norms()
    while (is_going := left > tolerance * first).any():
        going = np.flatnonzero(is_going).tolist()
        for number in going:
            each = done[number]
            if each.corrections == MOST_CORRECTIONS or each.iterations >= most_iterations:
                raise stopped(SOLVER, each, float(left[number] / first[number]), tolerance, number)
        goals = np.where(is_going, np.maximum(REDUCTION * left, ENOUGH * tolerance * first), np.inf)
        most = most_iterations - max(done[number].iterations for number in going)
        taken = solver.solve_rows(goals, most, meanwhile)
        found = norms()
        left = np.where(is_going, found, left)
        rows.give_back()
        for number in going:
            done[number].iterations += int(taken[number])
            done[number].corrections += 1
            done[number].residuals.append(float(left[number] / first[number]))
            watch(number)
    return done
