"""Vector operations on arrays of nodes, with scalars that remain on the device; see cl/pb/vectors.cl."""

from __future__ import annotations

import math
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .colours import LANES
from .launching import Launch, Launching

if TYPE_CHECKING:
    from ..opencl.memory import Buffer

GROUPS = {"CPU": 64}  # work-groups per array; MOST_GROUPS for other devices
MOST_GROUPS = 1024
GROUP = 256


class Scalar(IntEnum):
    """Indices of scalars, as in cl/pb/vectors.cl."""

    RZ = 0
    ALPHA = 1
    BETA = 2
    SQUARE = 3


class Sum(IntEnum):
    """Purpose of a sum, as in cl/pb/vectors.cl."""

    START = 0
    ALPHA = 1
    SQUARE = 2
    BETA = 3


class Vectors:
    """Launches over arrays of `size` reals per row. Sums are reproducible to the bit.

    is_solution_wide : whether the solution in `advance` has wide numbers
    """

    def __init__(self, launching: Launching, size: int, is_solution_wide: bool = False) -> None:
        self.launching, self.size, queue = launching, size, launching.queue
        self.group = 1 if launching.is_cpu else min(GROUP, queue.device.largest_group)
        lanes = LANES if launching.is_cpu else 1
        self.macros = {"GROUP": self.group, "LANES": lanes, "WIDE_SOLUTION": int(is_solution_wide)}
        step = self.group * LANES
        most = GROUPS.get(queue.device.kind, MOST_GROUPS)
        self.chunk = -(-size // most // step) * step + step if size > most * step else step
        self.n_groups = -(-size // self.chunk)
        self.sums = queue.zeros(self.n_groups * launching.rows, launching.wide)
        self.scalars = queue.zeros(len(Scalar) * launching.rows, launching.wide)
        self._goals = queue.zeros(launching.rows, launching.wide)

    def norm(self) -> float:
        """Return the square root of the last sum of squares, after all earlier commands; it may be NaN or infinite."""
        return math.sqrt(float(self.squares()[0]))

    def squares(self) -> NDArray[np.floating]:
        """Return the last sums of squares, (rows,)."""
        return self._read()[:, Scalar.SQUARE]

    def take_whole_steps(self) -> None:
        """Set the step length of `advance` to 1."""
        scalars = np.zeros((self.launching.rows, len(Scalar)), self.launching.wide)
        scalars[:, Scalar.ALPHA] = 1
        self.launching.queue.write(self.scalars, scalars)

    def take_goals(self, squares: NDArray[np.floating]) -> None:
        """Set the sums of squares at which rows stop, (rows,)."""
        self.launching.queue.write(self._goals, squares)

    def _read(self) -> NDArray[np.floating]:
        """Read the scalars, (rows, len(Scalar))."""
        rows = self.launching.rows
        values = self.launching.queue.download(self.scalars, rows * len(Scalar), self.launching.wide)
        return values.reshape(rows, len(Scalar))

    def square(self, values: Buffer) -> list[Launch]:
        """Return the launches that compute the sum of squares."""
        return [self._multiply(values, values), self._conclude(Sum.SQUARE)]

    def start(self, residual: Buffer, preconditioned: Buffer, direction: Buffer) -> list[Launch]:
        """Return the launches that compute the first direction."""
        return [
            self._multiply(residual, preconditioned),
            self._conclude(Sum.START),
            self._turn(preconditioned, direction),
        ]

    def step(self, direction: Buffer, product: Buffer) -> list[Launch]:
        """Return the launches that compute the step length."""
        return [self._multiply(direction, product), self._conclude(Sum.ALPHA)]

    def advance(self, direction: Buffer, product: Buffer, solution: Buffer, residual: Buffer) -> list[Launch]:
        """Return the launches that take a step and compute the residual's sum of squares."""
        launch = self._over(
            "advance", scalars=self.scalars, direction=direction, product=product, solution=solution,
            residual=residual, sums=self.sums,
        )  # fmt: skip
        return [launch, self._conclude(Sum.SQUARE)]

    def turn(self, residual: Buffer, preconditioned: Buffer, direction: Buffer) -> list[Launch]:
        """Return the launches that compute the next direction."""
        return [
            self._multiply(residual, preconditioned),
            self._conclude(Sum.BETA),
            self._turn(preconditioned, direction),
        ]

    def _turn(self, preconditioned: Buffer, direction: Buffer) -> Launch:
        return self._over("turn", scalars=self.scalars, preconditioned=preconditioned, direction=direction)

    def _multiply(self, a: Buffer, b: Buffer) -> Launch:
        return self._over("multiply", a=a, b=b, sums=self.sums)

    def _over(self, name: str, **values: Any) -> Launch:
        shape, group = (self.n_groups * self.group, self.launching.rows), (self.group, 1)
        return self.launching.prepare(
            "pb/vectors.cl", name, shape, group, self.macros, n=self.size, chunk=self.chunk, **values
        )

    def _conclude(self, what: Sum) -> Launch:
        shape, group = (self.group, self.launching.rows), (self.group, 1)
        return self.launching.prepare(
            "pb/vectors.cl", "conclude", shape, group, self.macros, n_sums=self.n_groups, what=what, sums=self.sums,
            goals=self._goals, scalars=self.scalars,
        )  # fmt: skip
