"""Atoms as the nonbonded kernels want them: constants folded in, lengths in fixed-point steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Floats
from ..atoms.charges import rounded_charges
from ..common.errors import InputError
from ..gb_models.solvent_model import SolventModel
from ..opencl.interface import LIST_MODEL
from ..plan.conformations import Encoding

FIXED_POINT_BITS = 30  # of a coordinate, so that differences fit 32 bits
LARGEST_SPAN_FLOAT32 = 4000.0  # A; a fixed-point step is then 4e-6 A


@dataclass(frozen=True, eq=False)
class Traits:
    """Constants of the atoms in one precision and one unit of length.

    step : A, the unit
    charges : (n,) times the root of Coulomb's constant over the internal dielectric
    values : (n, 4) sigma/2 or its root, sqrt(4 epsilon), 1 in place of sqrt(1 / Born radius), 1 / internal dielectric
    model : the kernels' ListModel
    """

    step: float
    charges: NDArray[Any]
    values: NDArray[Any]
    model: np.void

    @classmethod
    def of(cls, atoms: Atoms, internal_dielectrics: Floats, model: SolventModel, precision: str, step: float) -> Traits:
        """Make the constants of a molecule. internal_dielectrics : (n,)"""
        assert atoms.lj_sigma is not None
        assert atoms.lj_epsilon is not None
        real = np.dtype(precision)
        # One internal dielectric is taken into the charges; what differs from atom to atom is looked up by pair.
        inside = 1.0 if differ(internal_dielectrics) else float(internal_dielectrics[0])
        charges = np.sqrt(model.coulomb_constant / (step * inside)) * atoms.charges
        sigma = atoms.lj_sigma / step
        sigma = np.sqrt(sigma) if atoms.combining == "geometric" else _summable(sigma / 2, real)
        columns = sigma, np.sqrt(4 * atoms.lj_epsilon), np.ones(len(atoms)), 1 / internal_dielectrics
        kernel_model = LIST_MODEL.pack(
            precision,
            own_sigma2=1 / step**2,
            own_charges=model.coulomb_constant / (step * inside),
            inv_outside=inside / model.solvent_dielectric,
            kappa=model.kappa * step,
            coulomb_cut=1 - atoms.one_four[0],
            lj_cut=1 - atoms.one_four[1],
        )
        rounded = rounded_charges(charges) if real == np.float32 else charges
        return cls(step, rounded, np.stack(columns, axis=1, dtype=real, casting="same_kind"), kernel_model)

    def roots(self, born_radii: Floats) -> NDArray[Any]:
        """sqrt(1 / Born radius) [step^-1/2] as the kernels take it, of Born radii of any shape, A."""
        roots: NDArray[Any] = np.sqrt(self.step / born_radii).astype(self.charges.dtype)
        return roots


@dataclass(frozen=True, eq=False)
class MoleculeRecords:
    """Atoms with the constants of their nonbonded energy.

    encoding : of positions on their way to a device; its step is the unit of length of `traits`
    dielectrics : (n,) internal dielectric constants
    gb : whether there is a GB term
    """

    atoms: Atoms
    encoding: Encoding
    traits: Traits
    dielectrics: Floats
    model: SolventModel
    gb: bool

    @classmethod
    def of(
        cls, atoms: Atoms, dielectrics: Floats, model: SolventModel, precision: str, gb: bool, doubles: bool
    ) -> MoleculeRecords:
        """Make the constants of atoms in a precision, for a device with or without float64.

        Raises InputError for a molecule too large for float32.
        """
        lowest, highest = atoms.bounds()
        encoding = encoding_for(precision, float((highest - lowest).max()), doubles)
        traits = Traits.of(atoms, dielectrics, model, precision, encoding.step)
        return cls(atoms, encoding, traits, dielectrics, model, gb)

    @property
    def macros(self) -> dict[str, int]:
        """Build definitions of the kernels."""
        return {
            "GB": int(self.gb),
            "SCREENED": int(self.gb and self.model.kappa > 0),
            "GEOMETRIC": int(self.atoms.combining == "geometric"),
            "VARIABLE_DIELECTRIC": int(differ(self.dielectrics)),
        }


def differ(values: Floats) -> bool:
    """Return whether some values are unequal."""
    return bool(np.ptp(values) > 0)


def encoding_for(precision: str, span: float, doubles: bool) -> Encoding:
    """Choose the encoding of positions for this span, A, with room for a quarter more and 64 A.

    doubles : whether the device has float64; its kernels make steps of the positions then

    Raises InputError if fixed-point coordinates of 32 bits would be too coarse for close pairs.
    """
    if precision == "float64":
        return Encoding(np.dtype(np.float64), 1.0, float(np.finfo(np.float64).max) / 4)
    check_float32_span(span)
    reach = 2.0 ** np.ceil(np.log2(0.625 * span + 32))
    dtype = np.dtype(np.float64 if doubles else np.int32)
    return Encoding(dtype, float(reach / 2**FIXED_POINT_BITS), min(reach, LARGEST_SPAN_FLOAT32 / 2))


def check_float32_span(span: float) -> None:
    """Raise InputError for atoms that span more, A, than float32 holds."""
    if span > LARGEST_SPAN_FLOAT32:
        raise InputError(
            f"the atoms span {span:,.0f} A, more than the {LARGEST_SPAN_FLOAT32:,.0f} A that float32 holds; "
            "use `precision='float64'`"
        )


def _summable(values: Floats, real: np.dtype[np.floating]) -> Floats:
    """Values rounded so that the sum of any two is exact in `real`."""
    digit = 2.0 ** (np.ceil(np.log2(max(float(values.max()), 1e-300))) - np.finfo(real).nmant)
    rounded: Floats = np.round(values / digit) * digit
    return rounded
