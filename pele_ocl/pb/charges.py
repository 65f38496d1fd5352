"""Spreading of charges to grid nodes, and interpolation of the potential at atoms with the same weights."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..atoms import Floats
from ..grid import Grid
from ..pb_model import PBProblem
from .colours import Colours

Where = Literal["inside", "on"]
_DEGREES = {"spl0": 1, "spl2": 2, "spl4": 4}  # degrees of the splines used to spread charges


def reach_of(spreading: str) -> float:
    """Return the range of the spline that spreads a charge, in grid spacings."""
    return (_DEGREES[spreading] + 1) / 2


@dataclass(frozen=True, eq=False)
class NodeWeights:
    """Weights of the nodes around atoms.

    atoms : (m,) indices of the atoms that have weights
    axes : (3, s, m) i, j, k of the s nodes along each axis
    weights : (m, w) of the w = s^3 nodes around an atom, x varying fastest; 0 for nodes off the grid
    """

    atoms: NDArray[np.integer]
    axes: NDArray[np.integer]
    weights: Floats
    _places: NDArray[np.uint32] | None = field(default=None, init=False)

    @classmethod
    def of(cls, problem: PBProblem, grid: Grid, where: Where = "inside") -> NodeWeights:
        """Compute the weights for the problem's charge spreading.

        where : "inside" for atoms within the border, which have charges, or "on" for atoms on the grid, including its
            border, which have a potential
        """
        at, degree = problem.solute.axes, _DEGREES[problem.model.charges]
        origin, last, spacing = (each[:, None] for each in (grid.origin, grid.last, grid.spacing))
        if degree > 1:
            beyond = degree // 2 * spacing
            taken = ((at > origin - beyond) & (at < last + beyond)).all(axis=0)
        elif where == "inside":
            taken = ((at > origin) & (at < last)).all(axis=0)
        else:
            taken = ((at >= origin) & (at <= last)).all(axis=0)
        place = (at[:, taken] - origin) / spacing
        low = np.floor(place).astype(np.int64)
        steps = np.arange(2) if degree == 1 else np.arange(-(degree // 2), degree // 2 + 2)
        index = low[:, None] + steps[:, None]
        if degree > 1:
            share = _spline((degree + 1) / 2 + (index - place[:, None]), degree)
        else:
            rest = place - low
            share = np.stack([1 - rest, rest], axis=1)
        largest = np.array(grid.shape)[:, None, None] - 1
        share = np.where((index >= 0) & (index <= largest), share, 0)
        # x varies fastest, so that charges are summed in the order of the definition.
        u, v, w = share
        weights = w[:, None, None] * v[:, None] * u
        return cls(np.flatnonzero(taken), np.clip(index, 0, largest), np.ascontiguousarray(_by_atom(weights)))

    @property
    def nodes(self) -> NDArray[np.integer]:
        """Nodes of the weights, (m, w, 3) i, j, k."""
        i, j, k = self.axes
        return np.stack([_by_atom(each) for each in np.broadcast_arrays(i, j[:, None], k[:, None, None])], axis=-1)

    def places(self, colours: Colours) -> NDArray[np.uint32]:
        """Return the indices of the nodes in arrays of a grid, (m, w); cached."""
        if self._places is None:
            i, j, k = self.axes
            places = colours.index_of_axes(i, j[:, None], k[:, None, None]).astype(np.uint32)
            object.__setattr__(self, "_places", np.ascontiguousarray(_by_atom(places)))
        assert self._places is not None
        return self._places


def _by_atom(values: NDArray[Any]) -> NDArray[Any]:
    """Reshape values of nodes along z, y, x from (s, s, s, m) to (m, s^3)."""
    return values.reshape(-1, values.shape[-1]).T


def _spline(t: Floats, degree: int) -> Floats:
    """Evaluate a B-spline with support from 0 to degree + 1, by recursion over the degree."""
    if degree == 1:
        tent: Floats = np.maximum(0, 1 - np.abs(t - 1))
        return tent
    rising, falling = _spline(t, degree - 1), _spline(t - 1, degree - 1)
    values: Floats = t / degree * rising + (degree + 1 - t) / degree * falling
    return values


@dataclass(frozen=True, eq=False)
class NodeCharges:
    """Charges of nodes. nodes : (m, 3) i, j, k, without duplicates; charges : (m,) e"""

    nodes: NDArray[np.integer]
    charges: Floats

    @classmethod
    def none(cls) -> NodeCharges:
        """Return an empty set of charges."""
        return cls(np.zeros((0, 3), np.int64), np.zeros(0))

    @classmethod
    def of(cls, problem: PBProblem, grid: Grid, spread: NodeWeights) -> NodeCharges:
        """Spread the charges of atoms over the nodes around them, summed in the order of the atoms."""
        nx, ny, _ = grid.shape
        nodes = spread.nodes.reshape(-1, 3)
        parts = (problem.solute.charges[spread.atoms, None] * spread.weights).ravel()
        number, member = np.unique((nodes[:, 2] * ny + nodes[:, 1]) * nx + nodes[:, 0], return_inverse=True)
        charges = np.bincount(member.ravel(), parts, len(number)) if len(number) else np.zeros(0)
        found = charges != 0
        number = number[found]
        return cls(np.stack([number % nx, number // nx % ny, number // nx // ny], axis=1), charges[found])

    def inner(self, shape: tuple[int, int, int]) -> NDArray[np.bool_]:
        """Return which nodes are not on the border, (m,) True or False."""
        return np.asarray(np.all((self.nodes > 0) & (self.nodes < np.array(shape) - 1), axis=1))

    def on_grid(self, shape: tuple[int, int, int]) -> Floats:
        """Return the charges as an array, (nz, ny, nx)."""
        values = np.zeros(shape[::-1])
        values[self.nodes[:, 2], self.nodes[:, 1], self.nodes[:, 0]] = self.charges
        return values
