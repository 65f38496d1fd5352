"""Atoms as the nonbonded kernels want them: two records each, charges and constants folded in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Floats
from ..atoms.charges import rounded_charges
from ..opencl.shared import LIST_MODEL
from ..solvent_model import SolventModel
from ..units import COULOMB_KCAL_A

if TYPE_CHECKING:
    from ..opencl.kernels import Run

FIXED_POINT_BITS = 30  # of a coordinate, so that differences fit 32 bits


@dataclass(eq=False)
class Mirror:
    """An array on the device, in some order of its rows; filled anew only where array or order is another object."""

    array: NDArray[Any] | None = None
    order: NDArray[np.intp] | None = None
    buffer: Any = None

    def of(self, run: Run, array: NDArray[Any], order: NDArray[np.intp] | None) -> Any:
        """The buffer that holds the array."""
        if array is not self.array or order is not self.order:
            values = array if order is None else np.take(array, order, axis=0)
            if self.buffer is None or self.buffer.size != values.nbytes:
                self.buffer = run.empty(values.size, values.dtype)
            run.write(self.buffer, values)
            self.array, self.order = array, order
        return self.buffer


@dataclass(frozen=True, eq=False)
class Traits:
    """What the kernels take of the atoms besides where they are, in one precision and one unit of length.

    step : A, the unit
    charges : (n,) times the root of Coulomb's constant over the internal dielectric
    values : (n, 4) sigma/2 or its root, sqrt(4 epsilon), sqrt(1 / Born radius), 1 / internal dielectric
    born_radii : (n,) A, those in values; None where there are none
    model : the kernels' ListModel
    """

    step: float
    charges: NDArray[Any]
    values: NDArray[Any]
    born_radii: Floats | None
    model: Any

    @classmethod
    def of(cls, atoms: Atoms, internal_dielectrics: Floats, model: SolventModel, precision: str, step: float) -> Traits:
        """Without Born radii."""
        assert atoms.lj_sigma is not None
        assert atoms.lj_epsilon is not None
        real = np.dtype(precision)
        # One internal dielectric is taken into the charges; what differs from atom to atom is looked up by pair.
        inside = 1.0 if differ(internal_dielectrics) else float(internal_dielectrics[0])
        charges = np.sqrt(COULOMB_KCAL_A / (step * inside)) * atoms.charges
        sigma = atoms.lj_sigma / step
        sigma = np.sqrt(sigma) if atoms.combining == "geometric" else _summable(sigma / 2, real)
        columns = sigma, np.sqrt(4 * atoms.lj_epsilon), np.ones(len(atoms)), 1 / internal_dielectrics
        kernel_model = LIST_MODEL.pack(
            precision,
            own_sigma2=1 / step**2,
            own_charges=COULOMB_KCAL_A / (step * inside),
            inv_outside=inside / model.solvent_dielectric,
            kappa=model.kappa * step,
            coulomb_cut=1 - atoms.one_four[0],
            lj_cut=1 - atoms.one_four[1],
        )
        rounded = rounded_charges(charges) if real == np.float32 else charges
        return cls(step, rounded, np.stack(columns, axis=1, dtype=real, casting="same_kind"), None, kernel_model)

    def with_born_radii(self, born_radii: Floats) -> Traits:
        """The same with Born radii (n,) A."""
        values = self.values.copy()
        values[:, 2] = np.sqrt(self.step / born_radii)
        return replace(self, values=values, born_radii=born_radii)


@dataclass(frozen=True, eq=False)
class Records:
    """What cl/nonbond/pair.clh calls places and traits, of one conformation.

    places : (n, 4) x, y, z in steps from the middle, in float32 whole numbers, and charge
    kept : the buffers of places and of traits
    """

    places: NDArray[Any]
    traits: Traits
    kept: tuple[Mirror, Mirror]

    @property
    def step(self) -> float:
        """The unit of all lengths, A."""
        return self.traits.step

    @property
    def model(self) -> Any:
        """The kernels' ListModel."""
        return self.traits.model

    def upload(self, run: Run, order: NDArray[np.intp] | None = None) -> tuple[Any, Any]:
        """Buffers of places and traits, in another order where one is given."""
        places, traits = self.kept
        return places.of(run, self.places, order), traits.of(run, self.traits.values, order)


def differ(values: Floats) -> bool:
    """Whether not all values are the same."""
    return bool(np.ptp(values) > 0)


def step_of(reach: float, precision: str) -> float:
    """The unit of length, A: 1 in float64, else the power of two that makes coordinates numbers of FIXED_POINT_BITS.

    reach : largest coordinate from the middle, A
    """
    if precision == "float64":
        return 1.0
    reach = 1.001 * max(reach, 1e-3)
    return float(2.0 ** (np.ceil(np.log2(reach)) - FIXED_POINT_BITS))


def places_of(columns: Floats, traits: Traits) -> NDArray[Any]:
    """Positions and charges side by side. columns : (3, n) A from the middle, which are lost"""
    columns *= 1 / traits.step  # a power of two, so this is as good as a division
    whole = traits.charges.dtype == np.float32
    if whole:
        np.rint(columns, out=columns)
    places = np.empty((columns.shape[1], 4), np.int32 if whole else np.float64)
    for axis in range(3):  # twice as fast as all at once
        places[:, axis] = columns[axis]
    places[:, 3] = traits.charges.view(places.dtype)
    return places


def _summable(values: Floats, real: np.dtype[Any]) -> Floats:
    """Values rounded so that the sum of any two is exact in `real`."""
    digit = 2.0 ** (np.ceil(np.log2(max(float(values.max()), 1e-300))) - np.finfo(real).nmant)
    rounded: Floats = np.round(values / digit) * digit
    return rounded
