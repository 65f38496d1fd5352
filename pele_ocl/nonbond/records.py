"""Atoms as the nonbonded kernels want them: two records each, charges and constants folded in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Floats
from ..rounding import rounded_charges
from ..solvent_model import SolventModel
from ..units import COULOMB_KCAL_A

FIXED_POINT_BITS = 30  # of a coordinate, so that differences fit 32 bits


@dataclass(frozen=True, eq=False)
class Records:
    """What cl/nonbond.clh calls places, traits and Model, in one precision.

    places : (n, 4) x, y, z and charge times the root of Coulomb's constant; float32: fixed-point integers
    traits : (n, 4) sigma/2 or its root, sqrt(4 epsilon), 1 / Born radius, 1 / internal dielectric
    model : the kernel's Model
    switches : the macros that go with them
    """

    places: NDArray[Any]
    traits: NDArray[Any]
    model: Any
    switches: dict[str, int]

    @classmethod
    def of(
        cls, atoms: Atoms, born_radii: Floats | None, internal_dielectrics: Floats, model: SolventModel, precision: str
    ) -> Records:
        assert atoms.lj_sigma is not None
        assert atoms.lj_epsilon is not None
        real = np.dtype(precision)
        middle = (atoms.positions.min(axis=0) + atoms.positions.max(axis=0)) / 2
        places, step = _places(atoms.positions - middle, np.sqrt(COULOMB_KCAL_A) * atoms.charges, real)
        geometric = atoms.combining == "geometric"
        sigma = np.sqrt(atoms.lj_sigma) if geometric else atoms.lj_sigma / 2
        inv_born = np.ones(len(atoms)) if born_radii is None else 1 / born_radii
        traits = np.column_stack([sigma, np.sqrt(4 * atoms.lj_epsilon), inv_born, 1 / internal_dielectrics])
        names = ("step", "inv_outside", "kappa", "coulomb_scale", "lj_scale")
        values = (step, 1 / model.solvent_dielectric, model.kappa, *atoms.one_four)
        kernel_model = np.array(values, dtype=[(name, real) for name in names])[()]
        gb = int(born_radii is not None)
        switches = {"GB": gb, "SCREENED": int(gb and model.kappa > 0), "GEOMETRIC": int(geometric)}
        return cls(places, np.ascontiguousarray(traits, real), kernel_model, switches)


def _places(positions: Floats, charges: Floats, real: np.dtype[Any]) -> tuple[NDArray[Any], float]:
    """Positions and charges side by side, and the length of a unit of the positions, A."""
    if real == np.float64:
        return np.column_stack([positions, charges]), 1.0
    reach = 1.001 * max(float(np.abs(positions).max()), 1e-3)
    step = 2.0 ** (np.ceil(np.log2(reach)) - FIXED_POINT_BITS)
    places = np.empty((len(positions), 4), np.int32)
    places[:, :3] = np.round(positions / step)
    places[:, 3] = rounded_charges(charges).view(np.int32)
    return places, step
