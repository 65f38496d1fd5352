"""Necks of GBn and GBn2: the space between two close atoms that is too narrow for water, by their radii.

The tables are of Mongan, Simmerling, McCammon, Case and Onufriev, J. Chem. Theory Comput. 3, 156 (2007).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Floats
from ..common.errors import ParameterError
from ..common.installation import shipped

LEAST_RADIUS, MOST_RADIUS, STEP = 1.0, 2.0, 0.05  # of the tables, A
REACH = 6.8  # necks end where two atoms are this far beyond the sum of their radii, A
MOST_KINDS = 256  # different radii of a molecule: the tables grow with their square


@dataclass(frozen=True, eq=False)
class Necks:
    """Necks of pairs of atoms, by kinds: atoms of one kind have the same radius.

    An atom i takes m0 / (1 + (r - d0)^2 + 0.3 (r - d0)^6) from an atom j at distance r. This holds up to REACH beyond
    the sum of their radii.

    kinds : (n,) the kind of each atom
    radii : (k,) A, of each kind
    distances : (k, k) d0, A, by the kinds of j and of i
    sizes : (k, k) m0 times the model's scale, 1/A, likewise
    """

    kinds: NDArray[np.intp]
    radii: Floats
    distances: Floats
    sizes: Floats

    @classmethod
    def of(cls, atoms: Atoms, scale: float, model: str, nearest: bool = False, radii_set: str | None = None) -> Necks:
        """Make the necks of a molecule in a model of this scale and name.

        nearest : whether radii between the steps of the tables take the nearest one; otherwise straight lines
        radii_set : the set of radii that the model was made with, for the error

        Raises ParameterError for a radius outside the tables and for too many different radii.
        """
        assert atoms.gb_radii is not None
        radii, kinds = np.unique(atoms.gb_radii, return_inverse=True)
        if radii[0] < LEAST_RADIUS or radii[-1] > MOST_RADIUS:
            outside = (atoms.gb_radii < LEAST_RADIUS) | (atoms.gb_radii > MOST_RADIUS)
            i = int(np.argmax(outside))
            instead = f"`radii='{radii_set}'` or atoms.with_radii('{radii_set}'), or " if radii_set else ""
            raise ParameterError(
                f"the GB radius of {atoms.describe(i)} is {atoms.gb_radii[i]:g} A, and {model} has necks for radii "
                f"from {LEAST_RADIUS:g} to {MOST_RADIUS:g} A only; "
                f"choose {instead}another GB model"
            )
        if len(radii) > MOST_KINDS:
            raise ParameterError(
                f"the atoms have {len(radii):,} different GB radii, and {model} has necks for {MOST_KINDS} at most; "
                "choose another model or radii by element"
            )
        places = (radii - LEAST_RADIUS) / STEP
        if nearest:
            places = np.floor(places + 0.5)
        distances, sizes = (_between(table, places) for table in tables())
        return cls(kinds.reshape(-1), radii, distances, scale * sizes)

    @property
    def reach(self) -> float:
        """Distance beyond which no pair of the molecule has a neck, A."""
        return float(2 * self.radii[-1] + REACH)


@cache
def tables() -> tuple[Floats, Floats]:
    """d0 (A) and m0 (1/A), (21, 21) each, by the radii of j and of i."""
    values = np.loadtxt(shipped("data") / "gb_necks.csv", delimiter=",")
    distances, sizes = values.reshape(2, -1, values.shape[1])
    return distances, sizes


def _between(table: Floats, places: Floats) -> Floats:
    """Interpolate the table at places (k,) in steps of both dimensions, bilinearly between the steps, (k, k)."""
    steps = np.arange(len(table))
    along = np.array([np.interp(places, steps, row) for row in table])  # (21, k)
    return np.array([np.interp(places, steps, column) for column in along.T]).T
