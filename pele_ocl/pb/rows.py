"""Equations of grids of one shape, solved in one set of launches: each is a row.

A row gives the same bits alone and in company: no sum is over rows, and each stops by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..atoms import Floats
from ..grid import Grid
from .colours import Colours
from .equation import (
    ENOUGH,
    ENOUGH_OF_NEWTON,
    LARGEST_EXPONENT,
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
        self._salt: Buffer | None = None

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
        self._salt = self._joined([each.salt for each in self.equations])
        return Multigrid(self.launching, self.coefficients, self._salt)

    def linearise(self, number: int, up_to: float) -> None:
        """Find the operator's salt at the potential of a row. up_to : of Equation"""
        first = self.equations[0]
        self._over_row(
            number, "linearise", first.macros(False), **first.salt_arguments | {"accesses": self.coefficients.accesses},
            exponential_up_to=float(up_to), potential=self.potential, salt=self._salt,
        )  # fmt: skip

    def correct(self, number: int, correction: Buffer, share: float) -> None:
        """Add a share of a correction to the potential of a row."""
        macros = self.equations[0].macros(True)
        self._over_row(number, "correct", macros, share=share, correction=correction, potential=self.potential)

    def _over_row(self, number: int, kernel: str, macros: dict[str, int], **values: Any) -> None:
        own = replace(self.colours, first=number * self.colours.stride, stride=0)
        Launching(self.launching.queue).over_nodes("pb/outer.cl", kernel, own, macros, grid=own, **values)()

    def find_residual(self, residual: Buffer, is_linear: bool, up_to: float = LARGEST_EXPONENT) -> list[Launch]:
        """Launches that find what the equations lack. up_to : of Equation"""
        first = self.equations[0]
        macros = first.macros(is_linear)
        common = {
            **self.coefficients.wide_arguments, **first.salt_arguments, "accesses": self.coefficients.accesses,
            "exponential_up_to": float(up_to), "potential": self.potential, "lacks": residual,
        }  # fmt: skip
        launches = [
            self.launching.over_nodes("pb/outer.cl", "find_lacking", self.colours, macros, grid=self.colours, **common)
        ]
        for number, each in enumerate(self.equations):
            if count := int(each.charged["n_charged"]):
                own = replace(self.colours, first=number * self.colours.stride)
                launches.append(
                    self.launching.over_list(
                        "pb/outer.cl", "find_lacking_at", count, macros, grid=own, **common, **each.charged
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
    """Solve equations by "mgcg", each as `solve` does it alone; their potentials are the solutions.

    equations : of one model, on grids of one shape and spacing; on a device with float64
    watch : called with the number of an equation after each of its corrections
    meanwhile : called while the device does an iteration

    Raises StoppedError if the solver of a row does not get there.
    """
    rows, is_nonlinear = Rows(equations), equations[0].model.is_nonlinear
    multigrid = rows.multigrid()
    solver = MultigridGradients(rows.launching, multigrid, None if is_nonlinear else rows.potential)
    done, measure = [Convergence() for _ in equations], solver.vectors.square(solver.residual)
    first: Floats | None = None
    for is_linear, share_wanted, up_to in stages_of(is_nonlinear, tolerance):
        find = rows.find_residual(solver.residual, is_linear, up_to)
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
                    rows.linearise(number, up_to)
            if not is_linear:
                multigrid.take_salt()
            part = REDUCTION if is_linear else np.clip(share_left, REDUCTION, MOST_REDUCTION)
            goals = np.maximum(part * left, (ENOUGH if is_linear else ENOUGH_OF_NEWTON) * wanted * first)
            most = most_iterations - max(done[number].iterations for number in going)
            taken = solver.solve_rows(np.where(is_going, goals, np.inf), most, meanwhile)
            left = take_corrections(rows, solver, norms, left, is_going, is_linear)
            share_left = np.divide(left, first, out=np.zeros_like(left), where=first != 0)
            rows.give_back()
            for number in going:
                done[number].iterations += int(taken[number])
                done[number].corrections += 1
                done[number].residuals.append(float(share_left[number]))
                watch(number)
    return done


def take_corrections(
    rows: Rows, solver: MultigridGradients, norms: Callable[[], Floats], before: Floats, is_going: NDArray[np.bool_],
    is_linear: bool,
) -> Floats:  # fmt: skip
    """Take the corrections of rows, or the largest shares of Newton's that make residuals smaller; these, by norm."""
    shares = np.ones(len(before))
    if not solver.adds:
        for number in np.flatnonzero(is_going):
            rows.correct(int(number), solver.solution, 1.0)
    left = norms()
    while not is_linear and (is_worse := is_going & (left >= before) & (shares > LEAST_STEP)).any():
        for number in np.flatnonzero(is_worse):
            shares[number] /= 2
            rows.correct(int(number), solver.solution, -float(shares[number]))
        left = norms()
    return np.where(is_going, left, before)
