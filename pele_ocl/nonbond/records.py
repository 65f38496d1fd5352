"""Atoms as the nonbonded kernels want them: two records each, charges and constants folded in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Floats
from ..charges import rounded_charges
from ..solvent_model import SolventModel
from ..units import COULOMB_KCAL_A

if TYPE_CHECKING:
    from ..opencl.kernels import Run

FIXED_POINT_BITS = 30  # of a coordinate, so that differences fit 32 bits


@dataclass(frozen=True, eq=False)
class Records:
    """What cl/nonbond.clh calls places, traits and Model, in one precision.

    step : A, the unit of all lengths in the records
    places : (n, 4) x, y, z, and the charge times the root of Coulomb's constant over the internal dielectric; in
        float32 x, y, z are whole numbers
    traits : (n, 4) sigma/2 or its root, sqrt(4 epsilon), sqrt(1 / Born radius), 1 / internal dielectric
    model : the kernel's Model
    switches : the macros that go with them
    """

    step: float
    places: NDArray[Any]
    traits: NDArray[Any]
    model: Any
    switches: dict[str, int]

    def upload(self, run: Run, order: NDArray[np.intp] | None = None) -> tuple[Any, Any]:
        """Buffers of places and traits, in another order where one is given."""
        places, traits = (self.places, self.traits) if order is None else (self.places[order], self.traits[order])
        return run.upload(places, places.dtype), run.upload(traits)

    @classmethod
    def of(
        cls, atoms: Atoms, born_radii: Floats | None, internal_dielectrics: Floats, model: SolventModel, precision: str
    ) -> Records:
        assert atoms.lj_sigma is not None
        assert atoms.lj_epsilon is not None
        real = np.dtype(precision)
        lowest, highest = atoms.bounds()
        middle = (lowest + highest) / 2
        step = _step(float((highest - middle).max()), real)
        # One internal dielectric is taken into the charges; what differs from atom to atom is looked up by pair.
        variable = bool(np.ptp(internal_dielectrics) > 0)
        inside = 1.0 if variable else float(internal_dielectrics[0])
        charges = np.sqrt(COULOMB_KCAL_A / (step * inside)) * atoms.charges
        places = _places((atoms.positions - middle) / step, charges, real)
        geometric = atoms.combining == "geometric"
        sigma = atoms.lj_sigma / step
        sigma = np.sqrt(sigma) if geometric else _summable(sigma / 2, real)
        root_inv_born = np.ones(len(atoms)) if born_radii is None else np.sqrt(step / born_radii)
        traits = np.column_stack([sigma, np.sqrt(4 * atoms.lj_epsilon), root_inv_born, 1 / internal_dielectrics])
        constants = {
            "own_sigma2": 1 / step**2,
            "own_charges": COULOMB_KCAL_A / (step * inside),
            "inv_outside": inside / model.solvent_dielectric,
            "kappa": model.kappa * step,
            "coulomb_cut": 1 - atoms.one_four[0],
            "lj_cut": 1 - atoms.one_four[1],
        }
        kernel_model = np.array(tuple(constants.values()), dtype=[(name, real) for name in constants])[()]
        gb = int(born_radii is not None)
        switches = {
            "GB": gb,
            "SCREENED": int(gb and model.kappa > 0),
            "GEOMETRIC": int(geometric),
            "VARIABLE_DIELECTRIC": int(variable),
        }
        return cls(step, places, np.ascontiguousarray(traits, real), kernel_model, switches)


def _step(reach: float, real: np.dtype[Any]) -> float:
    """The unit of length, A: 1 in float64, else the power of two that makes coordinates numbers of FIXED_POINT_BITS.

    reach : largest coordinate from the middle, A
    """
    if real == np.float64:
        return 1.0
    reach = 1.001 * max(reach, 1e-3)
    return float(2.0 ** (np.ceil(np.log2(reach)) - FIXED_POINT_BITS))


def _places(positions: Floats, charges: Floats, real: np.dtype[Any]) -> NDArray[Any]:
    """Positions and charges side by side."""
    if real == np.float64:
        return np.column_stack([positions, charges])
    places = np.empty((len(positions), 4), np.int32)
    places[:, :3] = np.round(positions)
    places[:, 3] = rounded_charges(charges).view(np.int32)
    return places


def _summable(values: Floats, real: np.dtype[Any]) -> Floats:
    """Values rounded so that the sum of any two is exact in `real`."""
    digit = 2.0 ** (np.ceil(np.log2(max(float(values.max()), 1e-300))) - np.finfo(real).nmant)
    rounded: Floats = np.round(values / digit) * digit
    return rounded
