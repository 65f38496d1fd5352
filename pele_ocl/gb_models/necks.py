"""Neck correction of GBn and GBn2 for the space between two atoms that is too narrow for water.

The tables are from Mongan, Simmerling, McCammon, Case and Onufriev, J. Chem. Theory Comput. 3, 156 (2007).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Floats
from ..common.errors import ParameterError
from ..common.installation import shipped

LEAST_RADIUS, MOST_RADIUS, STEP = 1.0, 2.0, 0.05  # radii in the tables, A
REACH = 6.8  # a pair has no neck beyond the sum of its radii plus this distance, A
MOST_KINDS = 256  # different radii in a molecule; the size of the tables is quadratic in their number


@dataclass(frozen=True, eq=False)
class Necks:
    """Neck parameters for pairs of atoms. Atoms with equal radii form one kind.

    An atom j at distance r adds m0 / (1 + (r - d0)^2 + 0.3 (r - d0)^6) to the Born integral of atom i, if r is at most
    REACH larger than the sum of their radii.

    kinds : (n,) kind of each atom
    radii : (k,) radius of each kind, A
    distances : (k, k) d0, A, indexed by the kinds of j and i
    sizes : (k, k) m0 times the neck scale of the model, 1/A, indexed likewise
    """

    kinds: NDArray[np.intp]
    radii: Floats
    distances: Floats
    sizes: Floats

    @classmethod
    def of(cls, atoms: Atoms, scale: float, model: str, nearest: bool = False, radii_set: str | None = None) -> Necks:
        """Return the neck parameters of a molecule for a model with this neck scale and name.

        nearest : True to round radii to the nearest entry of the tables, False to interpolate linearly
        radii_set : set of radii that the model was parametrized with, for the error message

        Raises ParameterError for a radius outside the tables and for too many different radii.
        """
        assert atoms.gb_radii is not None
        radii, kinds = np.unique(atoms.gb_radii, return_inverse=True)
        if radii[0] < LEAST_RADIUS or radii[-1] > MOST_RADIUS:
            outside = (atoms.gb_radii < LEAST_RADIUS) | (atoms.gb_radii > MOST_RADIUS)
            i = int(np.argmax(outside))
            instead = f"`radii='{radii_set}'` or atoms.with_radii('{radii_set}'), or " if radii_set else ""
            raise ParameterError(
                f"the GB radius of {atoms.describe(i)} is {atoms.gb_radii[i]:g} A, but {model} has necks only for "
                f"radii from {LEAST_RADIUS:g} to {MOST_RADIUS:g} A; choose {instead}another GB model"
            )
        if len(radii) > MOST_KINDS:
            raise ParameterError(
                f"the atoms have {len(radii):,} different GB radii, but {model} has necks for at most {MOST_KINDS}; "
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
    """Read the tables of d0 (A) and m0 (1/A), (21, 21) each, indexed by the radii of j and i."""
    values = np.loadtxt(shipped("data") / "gb_necks.csv", delimiter=",")
    distances, sizes = values.reshape(2, -1, values.shape[1])
    return distances, sizes


def _between(table: Floats, places: Floats) -> Floats:
    """Interpolate a table bilinearly at all pairs of the fractional indices `places` (k,); returns (k, k)."""
    steps = np.arange(len(table))
    along = np.array([np.interp(places, steps, row) for row in table])  # (21, k)
    return np.array([np.interp(places, steps, column) for column in along.T]).T
