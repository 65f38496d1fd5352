"""Multigrid V-cycles; see docs/theory/poisson-boltzmann.md, section 5."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .launching import Launch, Launching, packed
from .surface import Coefficients

if TYPE_CHECKING:
    from ..opencl.memory import Buffer

MOST_IN_TAIL = {True: 16**3, False: 17**3}  # largest grid for a single work-group, in nodes, on CPUs and other devices
TAIL_GROUP = 512
SMOOTHINGS = 2  # relaxations before and after the coarse-grid correction
LEAST_SOLVING = 8  # minimum number of relaxations on the coarsest grid


class Multigrid:
    """Hierarchy of coarser grids, with launches for a V-cycle. The cycle is symmetric, so it can be a preconditioner.

    launching : its rows are problems solved together, with arrays stored one after another
    salt : of the finest grid, reals or bytes; call `take_salt` after changes
    unit : factor for salt in bytes; None for reals
    """

    def __init__(
        self, launching: Launching, coefficients: Coefficients, salt: Buffer, unit: float | None = None
    ) -> None:  # fmt: skip
        self.launching, self.coefficients = launching, coefficients
        self._finest_salt: dict[str, Any] = {"salt": salt, "salt_unit": 1.0 if unit is None else unit}
        self._salt_kind = 0 if not coefficients.has_salt else 1 if unit is None else 2
        self._is_plain = coefficients.is_coded and self._salt_kind != 1 and not launching.is_cpu
        self.grids = [coefficients.colours]
        first = 0
        while self.grids[-1].can_be_halved:
            coarse = self.grids[-1].halved(first)
            self.grids.append(coarse)
            first += coarse.size
        self.grids[1:] = [replace(grid, stride=first) for grid in self.grids[1:]]
        queue, self.size = launching.queue, first * launching.rows
        has_salt = coefficients.has_salt
        self._edges = tuple(queue.zeros(self.size) for _ in range(3))
        self._salt = queue.zeros(self.size if has_salt else 1)
        self._right, self._values, self._residual = (queue.zeros(self.size) for _ in range(3))
        self._no_table = queue.zeros(1)
        self._group = 1 if launching.is_cpu else min(TAIL_GROUP, queue.device.largest_group)
        self._coarse_macros = {"CODED": 0, "SALTED": int(has_salt), "PLAIN": 0, "GROUP": self._group}
        self._plain = self._mark_plain() if self._is_plain else {}
        for level in range(len(self.grids) - 1):
            self._coarsen_edges(level)
        self._salt_launches = [self._coarsen_salt(level) for level in range(len(self.grids) - 1)] if has_salt else []
        self.take_salt()

    def take_salt(self) -> None:
        """Update the salt term of the coarser grids."""
        for launch in self._salt_launches:
            launch()

    def _problem(self, level: int) -> dict[str, Any]:
        """Return the kernel arguments for the operator of a grid."""
        if level == 0:
            return {**self.coefficients.narrow_arguments, **self._finest_salt, **self._plain}
        x, y, z = self._edges
        return {"x_edges": x, "y_edges": y, "z_edges": z, "table": self._no_table, "salt": self._salt, "salt_unit": 1.0}

    def _macros(self, level: int) -> dict[str, int]:
        if level:
            return self._coarse_macros
        own = {"SALTED": self._salt_kind, "PLAIN": int(self._is_plain), "GROUP": self._group}
        return {**self.coefficients.macros, **own}

    def _mark_plain(self) -> dict[str, Any]:
        """Mark work-groups of the finest grid that contain only solvent. Returns kernel arguments."""
        finest, solvent = self.grids[0], self.coefficients.solvent_code
        marks = self.launching.queue.zeros(self.launching.groups_over(finest), np.uint8)
        self.launching.over_nodes(
            "pb/smooth.cl", "mark_plain", finest, self._macros(0), grid=finest, **self.coefficients.narrow_arguments,
            salt=self._finest_salt["salt"], solvent=solvent, marks=marks,
        )()  # fmt: skip
        return {"plain": marks, "solvent": solvent}

    def _coarsen_edges(self, level: int) -> None:
        fine, coarse = self.grids[level : level + 2]
        x, y, z = self._edges
        edges = {key: self._problem(level)[key] for key in ("x_edges", "y_edges", "z_edges", "table")}
        self.launching.over_all_nodes(
            "pb/coarsen.cl", "coarsen_edges", coarse, self._macros(level), fine=fine,
            grid=coarse, **edges, coarse_x=x, coarse_y=y, coarse_z=z,
        )()  # fmt: skip

    def _coarsen_salt(self, level: int) -> Launch:
        fine, coarse = self.grids[level : level + 2]
        salt = {key: value for key, value in self._problem(level).items() if key.startswith("salt")}
        return self.launching.over_nodes(
            "pb/coarsen.cl", "coarsen_salt", coarse, self._macros(level), fine=fine, grid=coarse, **salt,
            coarse_salt=self._salt,
        )  # fmt: skip

    def cycle(self, right: Buffer, values: Buffer, residual: Buffer) -> list[Launch]:
        """Return the launches of a V-cycle that computes a correction, `values`, from a right-hand side.

        residual : scratch for the red nodes of the finest grid
        """
        launches: list[Launch] = []
        n_grids, most = len(self.grids), MOST_IN_TAIL[self.launching.is_cpu]
        tail = next((k for k in range(1, n_grids) if np.prod(self.grids[k].shape) <= most), n_grids)
        arrays = [(right, values, residual)] + [(self._right, self._values, self._residual)] * (n_grids - 1)
        relax = [
            [self.smooth(level, colour, *arrays[level][:2]) for colour in (0, 1)] for level in range(tail)
        ]  # fmt: skip
        for level in range(tail):
            launches += self._down(level, *arrays[level], relax[level], last=level == n_grids - 1)
            if level < n_grids - 1:
                launches.append(
                    self.launching.over_nodes(
                        "pb/transfer.cl", "restrict_residual", self.grids[level + 1], self._coarse_macros,
                        fine=self.grids[level],
                        grid=self.grids[level + 1], residual=arrays[level][2], right=self._right,
                    )
                )  # fmt: skip
        if tail < n_grids:
            launches.append(self._solve_coarse(tail))
        for level in reversed(range(tail)):
            if level < n_grids - 1:
                launches.append(
                    self.launching.over_nodes(
                        "pb/transfer.cl", "add_correction", self.grids[level], self._coarse_macros,
                        coarse=self.grids[level + 1],
                        grid=self.grids[level], correction=self._values, values=arrays[level][1],
                    )
                )  # fmt: skip
            launches += relax[level][::-1] * SMOOTHINGS
        return launches

    def smooth(self, level: int, colour: int, right: Buffer, values: Buffer, share: float = 1.0) -> Launch:
        """Create a launch that relaxes one colour. share : relaxation factor, above 1 for overrelaxation"""
        return self.launching.over_nodes(
            "pb/smooth.cl", "smooth", self.grids[level], self._macros(level), grid=self.grids[level],
            **self._problem(level), colour=colour, share=share, right=right, values=values,
        )  # fmt: skip

    def find_residual(self, level: int, colour: int, right: Buffer, values: Buffer, residual: Buffer) -> Launch:
        """Create a launch that computes the residual at nodes of one colour."""
        return self.launching.over_nodes(
            "pb/smooth.cl", "find_residual", self.grids[level], self._macros(level), grid=self.grids[level],
            **self._problem(level), colour=colour, right=right, values=values, residual=residual,
        )  # fmt: skip

    def relax_by_residual(self, colour: int, share: float, residual: Buffer, values: Buffer) -> Launch:
        """Create a launch of a Jacobi step on the finest grid."""
        return self.launching.over_nodes(
            "pb/smooth.cl", "relax_by_residual", self.grids[0], self._macros(0), grid=self.grids[0],
            **self._problem(0), colour=colour, share=share, residual=residual, values=values,
        )  # fmt: skip

    def apply(self, direction: Buffer, product: Buffer) -> Launch:
        """Create a launch that applies the operator of the finest grid."""
        return self.launching.over_nodes(
            "pb/smooth.cl", "apply", self.grids[0], self._macros(0), grid=self.grids[0], **self._problem(0),
            direction=direction, product=product,
        )  # fmt: skip

    def _down(
        self, level: int, right: Buffer, values: Buffer, residual: Buffer, relax: list[Launch], last: bool
    ) -> list[Launch]:
        """Return the launches of a level on the way to coarser grids. relax : for red nodes, for black nodes"""
        launches = [
            self.launching.over_nodes(
                "pb/smooth.cl", "begin_smoothing", self.grids[level], self._macros(level), grid=self.grids[level],
                **self._problem(level), right=right, values=values,
            )
        ]  # fmt: skip
        launches += (relax * SMOOTHINGS)[1:]
        return launches if last else [*launches, self.find_residual(level, 0, right, values, residual)]

    def _solve_coarse(self, first: int) -> Launch:
        """Create a launch that processes all grids from `first` on in one work-group."""
        table = np.array([packed(grid) for grid in self.grids[1:]])
        solving = max(LEAST_SOLVING, 2 * max(self.grids[-1].shape))
        return self.launching.prepare(
            "pb/tail.cl", "solve_coarse", (self._group * self.launching.rows,), (self._group,), self._coarse_macros,
            grids=self.launching.queue.send(table, table.dtype), first=first - 1, n_grids=len(table),
            smoothings=SMOOTHINGS, solving=solving, **self._problem(1), right=self._right, values=self._values,
            residual=self._residual,
        )  # fmt: skip
