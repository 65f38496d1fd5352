"""Removal of the singular potential of the charges near atoms, which leaves the reaction field of the solvent.

The resulting equation is in docs/theory/poisson-boltzmann.md, section 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ..common.errors import InputError
from ..grid import Grid
from ..pb_model import PBProblem
from .border import add_spheres
from .charges import NodeWeights, reach_of
from .launching import Launching, NodeValues, ranges_of
from .scan import add_up_rows
from .surface import Coefficients

if TYPE_CHECKING:
    from ..opencl.memory import Buffer
    from .equation import Equation


def require_room(problem: PBProblem) -> None:
    """Raise InputError unless each grid contains the whole molecule, as the border must not have a singular part."""
    solute, model = problem.solute, problem.model
    for number, grid in enumerate(problem.grids):
        margin = np.maximum(grid.spacing, problem.grids[max(number - 1, 0)].spacing)
        spread = reach_of(model.charges) * grid.spacing
        reach = np.maximum(solute.radii + model.probe + margin[:, None], spread[:, None])
        if ((solute.axes - reach).min(axis=1) < grid.origin).any() or (
            (solute.axes + reach).max(axis=1) > grid.last
        ).any():
            raise InputError(
                "a grid does not enclose the molecule with a margin of a probe and a step, which reaction potentials "
                "need; use a larger grid, or reaction=False"
            )


class SingularPart:
    """Region around the atoms where the solution is the reaction potential, and the charges of the remaining equation.

    problems : with the same model; grids, around : for each problem; coefficients : of all problems
    charges : of the remaining equation, times the model's charge factor
    """

    def __init__(
        self, launching: Launching, problems: Sequence[PBProblem], grids: Sequence[Grid], coefficients: Coefficients,
        around: Sequence[NodeWeights],
    ) -> None:  # fmt: skip
        model, queue = problems[0].model, launching.queue
        self._launching, self._colours = launching, coefficients.colours
        self._size = launching.rows * self._colours.size
        self._coefficients, self._macros = coefficients, coefficients.macros
        self._edges = coefficients.wide_arguments | {"solutes": queue.send(coefficients.solutes, launching.wide)}
        self._factor = model.charge_factor / (4 * np.pi * model.solute_dielectric)
        self._solutes, self._grids = [each.solute for each in problems], grids
        self._around = around
        self.charges = self._charges(self._region())

    def add_to(self, equation: Equation) -> None:
        """Add the singular potential to the solution to obtain the complete potential."""
        bounds, nodes = self._marked(self._region())
        self._add_singular(_ranges(bounds), nodes, equation.potential)

    def _region(self) -> Buffer:
        """Mark the nodes with only the reaction potential, one byte each; not cached, to save memory for the solver."""
        region = self._launching.queue.zeros(self._size, np.uint8)
        self._over_nodes("find_region", accesses=self._coefficients.accesses, region=region)
        self._include(region)
        return region

    def _over_nodes(self, kernel: str, **values: Any) -> None:
        self._launching.over_nodes(
            "pb/atoms.cl", kernel, self._colours, self._macros, grid=self._colours, **self._edges, **values
        )()

    def _over_list(self, kernel: str, count: int, **values: Any) -> None:
        self._launching.over_list("pb/atoms.cl", kernel, count, self._macros, **values)()

    def _add_singular(self, ranges: Sequence[tuple[int, int]], nodes: Buffer, array: Buffer) -> None:
        """Add the singular potential at nodes to an array. ranges : as in add_spheres"""
        add_spheres(
            self._launching, self._solutes, self._grids, self._colours, ranges, nodes, self._factor, array,
            precise=False,
        )  # fmt: skip

    def _include(self, region: Buffer) -> None:
        """Add the nodes with spread charges to the region, regardless of their edges, and exclude ions from them.

        Otherwise ions at these nodes would interact with the reaction potential only.
        """
        colours, found = self._colours, []
        last = np.array(colours.shape) - 1
        for row, around in enumerate(self._around):
            chosen = around.weights != 0
            if (around.axes[:, 0] < 1).any() or (around.axes[:, -1].T >= last).any():
                chosen &= ((around.nodes > 0) & (around.nodes < last)).all(axis=-1)
            found.append(around.places(colours.of_row(row))[chosen])
        places = np.concatenate(found)
        self._over_list(
            "include_nodes", len(places), n_places=len(places), places=self._launching.queue.send(places, np.uint32),
            region=region, accesses=self._coefficients.accesses,
        )  # fmt: skip

    def _marked(self, marks: Buffer) -> tuple[list[int], Buffer]:
        """List the marked nodes: start of each row and end of the last row, and (count, 3) i, j, k."""
        queue, colours, rows = self._launching.queue, self._colours, self._launching.rows
        lines = rows * colours.shape[1] * colours.shape[2]
        counts = queue.empty(lines, np.int32)
        self._over_list("count_marked", lines, grid=colours, n_lines=lines, marks=marks, counts=counts)
        starts, bounds = add_up_rows(self._launching, counts, lines, rows)
        nodes = queue.empty(3 * bounds[-1], np.int32)
        self._over_list("list_marked", lines, grid=colours, n_lines=lines, marks=marks, starts=starts, nodes=nodes)
        return bounds, nodes

    def _charges(self, region: Buffer) -> NodeValues:
        """Return the charges of nodes whose equation contains the singular potential."""
        launching = self._launching
        queue = launching.queue
        jumps = queue.zeros(self._size, np.uint8)
        self._over_nodes("find_jumps", region=region, jumps=jumps)
        bounds, nodes = self._marked(jumps)
        right, ranges = queue.empty(bounds[-1], launching.wide), _ranges(bounds)
        counts = tuple(count for _, count in ranges)
        found = NodeValues(counts, nodes, right, ranges_of(launching, counts))
        if found.count:
            singular = queue.zeros(self._size, launching.wide)
            self._add_singular(ranges, nodes, singular)
            launching.over_lists(
                "pb/atoms.cl", "singular_charges", max(counts), self._macros, grid=self._colours, **self._edges,
                region=region, ranges=found.ranges, nodes=nodes, singular=singular, right=right,
            )()  # fmt: skip
        return found


def _ranges(bounds: Sequence[int]) -> list[tuple[int, int]]:
    """Convert bounds to ranges of first element and length."""
    return [(first, end - first) for first, end in pairwise(bounds)]
