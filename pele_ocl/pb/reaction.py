"""Singular potential of the atoms, taken out of the solution near them: the solvent's reaction is left.

docs/theory/poisson-boltzmann.md, section 4, has the equation that is left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..atoms import Floats
from ..errors import InputError
from ..grid import Grid
from ..pb_model import PBProblem
from .border import of_spheres
from .charges import NodeWeights, reach_of
from .launching import Launching, add_at
from .surface import Coefficients

if TYPE_CHECKING:
    from ..opencl.memory import Buffer
    from .equation import Equation


def require_room(problem: PBProblem) -> None:
    """Raise InputError unless every grid holds the whole molecule: the border's potential has no singular part."""
    solute, model = problem.solute, problem.model
    for number, grid in enumerate(problem.grids):
        margin = np.maximum(grid.spacing, problem.grids[max(number - 1, 0)].spacing)
        spread = reach_of(model.charges) * grid.spacing
        reach = np.maximum((solute.radii + model.probe)[:, None] + margin, spread)
        if (solute.positions - reach < grid.origin).any() or (solute.positions + reach > grid.last).any():
            raise InputError(
                "a grid does not hold the whole molecule with a probe and a step around it, as reaction potentials "
                "need; give a larger grid, or reaction=False"
            )


class SingularPart:
    """Region around the atoms where the solution is the reaction potential alone, and the charges this leaves.

    nodes, charges : (m, 3) i, j, k and (m,) of the equation that is left, times the model's charge factor
    """

    def __init__(
        self, launching: Launching, problem: PBProblem, grid: Grid, coefficients: Coefficients, around: NodeWeights
    ) -> None:
        solute, model, queue = problem.solute, problem.model, launching.queue
        colours = coefficients.colours
        self._launching, self._colours = launching, colours
        self._coefficients, self._macros = coefficients, coefficients.macros
        self._edges = coefficients.wide_arguments | {"solutes": queue.upload(coefficients.solutes, launching.wide)}
        self.region = queue.zeros(colours.size, np.uint8)
        launching.over_nodes(
            "pb/atoms.cl", "find_region", colours, self._macros, grid=colours, **self._edges,
            accesses=coefficients.accesses, region=self.region,
        )()  # fmt: skip
        self._include(around)
        self._factor = model.charge_factor / (4 * np.pi * model.solute_dielectric)
        self._solute, self._grid = solute, grid
        self.nodes = self._jumps()
        self.charges = self._charges()

    def add_to(self, equation: Equation) -> None:
        """Add the singular potential to the solution, so that it is the whole potential."""
        values = self._launching.queue.download(self.region, self._colours.size, np.uint8)
        z, y, x = np.nonzero(self._colours.merge(values))
        self._add_singular(np.stack([x, y, z], axis=1), equation.potential)

    def _add_singular(self, nodes: NDArray[np.integer], array: Buffer) -> None:
        """Add the singular potential at nodes to an array."""
        if len(nodes):
            points = self._grid.origin + nodes * self._grid.spacing
            values = of_spheres(self._launching, points, self._solute, self._factor, precise=False)
            add_at(self._launching, self._colours, self._macros, nodes, values, array)

    def _include(self, around: NodeWeights) -> None:
        """Let the region have the nodes that charges are spread on, whatever their edges, and keep ions from them.

        Else ions there would meet the reaction alone.
        """
        queue, colours, accesses = self._launching.queue, self._colours, self._coefficients.accesses
        inner = ((around.nodes > 0) & (around.nodes < np.array(colours.shape) - 1)).all(axis=-1)
        places = colours.index(around.nodes[inner & (around.weights != 0)])
        values = queue.download(self.region, colours.size, np.uint8)
        values[places] = 1
        queue.write(self.region, values)
        if self._coefficients.has_salt:
            reached = queue.download(accesses, colours.size, accesses.dtype)
            if reached[places].any():
                reached[places] = 0
                queue.write(accesses, reached)

    def _jumps(self) -> NDArray[np.integer]:
        queue, colours = self._launching.queue, self._colours
        jumps: Buffer = queue.zeros(colours.size, np.uint8)
        self._launching.over_nodes(
            "pb/atoms.cl", "find_jumps", colours, self._macros, grid=colours, **self._edges, region=self.region,
            jumps=jumps,
        )()  # fmt: skip
        z, y, x = np.nonzero(colours.merge(queue.download(jumps, colours.size, np.uint8)))
        return np.stack([x, y, z], axis=1)

    def _charges(self) -> Floats:
        launching, count = self._launching, len(self.nodes)
        queue = launching.queue
        if not count:
            return np.zeros(0)
        singular = queue.zeros(self._colours.size, launching.wide)
        self._add_singular(self.nodes, singular)
        right = queue.empty(count, launching.wide)
        launching.over_list(
            "pb/atoms.cl", "singular_charges", count, self._macros, grid=self._colours, **self._edges,
            region=self.region, n_nodes=count, nodes=queue.upload(self.nodes, np.int32), singular=singular, right=right,
        )()  # fmt: skip
        return queue.download(right, count, launching.wide).astype(np.float64)
