"""Records of atoms for nonbonded kernels, with lengths in fixed-point steps; pair lists on a device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Floats
from ..atoms.charges import rounded_charges
from ..common.errors import InputError
from ..gb_models.solvent_model import SolventModel
from ..opencl.interface import LIST_MODEL, ONE_FOUR
from ..pairs import PairList
from ..plan.conformations import Encoding

if TYPE_CHECKING:
    from ..opencl.kernel import Arguments
    from ..opencl.memory import Buffer
    from ..opencl.queue import Queue

FIXED_POINT_BITS = 30  # per coordinate, so that differences fit 32 bits
LARGEST_SPAN_FLOAT32 = 4000.0  # A; a fixed-point step is then 4e-6 A


@dataclass(frozen=True, eq=False)
class Traits:
    """Constants of the atoms in one precision and one unit of length.

    step : A, the unit of length
    charges : (n,) times the square root of Coulomb's constant over the internal dielectric
    values : (n, 4) sigma / 2 or sqrt(sigma), sqrt(4 epsilon), 1 as placeholder of sqrt(1 / Born radius), 1 / internal
        dielectric
    model : the kernels' ListModel
    """

    step: float
    charges: NDArray[Any]
    values: NDArray[Any]
    model: np.void

    @classmethod
    def of(cls, atoms: Atoms, internal_dielectrics: Floats, model: SolventModel, precision: str, step: float) -> Traits:
        """Compute the constants of a molecule. internal_dielectrics : (n,)"""
        assert atoms.lj_sigma is not None
        assert atoms.lj_epsilon is not None
        real = np.dtype(precision)
        # A common internal dielectric is included in the charges; different ones are looked up per pair.
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
        """sqrt(1 / Born radius) [step^-1/2] for kernels, from Born radii of any shape, A."""
        roots: NDArray[Any] = np.sqrt(self.step / born_radii).astype(self.charges.dtype)
        return roots


@dataclass(frozen=True, eq=False)
class MoleculeRecords:
    """Atoms with the constants of their nonbonded energy.

    encoding : of positions on the device; its step is the unit of length of `traits`
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
        """Compute the constants of atoms in a precision, for a device with or without float64.

        Raises InputError for a molecule too large for float32.
        """
        lowest, highest = atoms.bounds()
        encoding = encoding_for(precision, float((highest - lowest).max()), doubles)
        traits = Traits.of(atoms, dielectrics, model, precision, encoding.step)
        return cls(atoms, encoding, traits, dielectrics, model, gb)

    @property
    def macros(self) -> dict[str, int]:
        return {
            "GB": int(self.gb),
            "SCREENED": int(self.gb and self.model.kappa > 0),
            "GEOMETRIC": int(self.atoms.combining == "geometric"),
            "VARIABLE_DIELECTRIC": int(differ(self.dielectrics)),
        }


def differ(values: Floats) -> bool:
    """Return whether not all values are equal."""
    return bool(np.ptp(values) > 0)


def encoding_for(precision: str, span: float, doubles: bool) -> Encoding:
    """Return the encoding for positions with a span, A; it leaves room for 25 % plus 64 A.

    doubles : whether the device supports float64; positions are then converted to fixed point by its kernels

    Raises InputError if fixed-point coordinates of 32 bits would be too coarse for close pairs.
    """
    if precision == "float64":
        return Encoding(np.dtype(np.float64), 1.0, float(np.finfo(np.float64).max) / 4)
    check_float32_span(span)
    reach = 2.0 ** np.ceil(np.log2(0.625 * span + 32))
    dtype = np.dtype(np.float64 if doubles else np.int32)
    return Encoding(dtype, float(reach / 2**FIXED_POINT_BITS), min(reach, LARGEST_SPAN_FLOAT32 / 2))


def check_float32_span(span: float) -> None:
    """Raise InputError for a span, A, that is too large for float32."""
    if span > LARGEST_SPAN_FLOAT32:
        raise InputError(
            f"the atoms span {span:,.0f} A, more than the {LARGEST_SPAN_FLOAT32:,.0f} A that float32 supports; "
            "use `precision='float64'`"
        )


def _summable(values: Floats, real: np.dtype[np.floating]) -> Floats:
    """Round values so that the sum of any two is exact in `real`."""
    digit = 2.0 ** (np.ceil(np.log2(max(float(values.max()), 1e-300))) - np.finfo(real).nmant)
    rounded: Floats = np.round(values / digit) * digit
    return rounded


@dataclass(frozen=True, eq=False)
class PairListTask:
    """A pair list on a device with its molecule.

    pairs : buffer (n_pairs, 2) uint32; own : buffers of sigma^2 and charge products given by the list, or empty
    gradient : whether to compute the gradient
    """

    molecule: MoleculeRecords
    n_pairs: int
    pairs: Buffer
    own: tuple[Buffer, ...]
    gradient: bool

    @classmethod
    def of(cls, queue: Queue, molecule: MoleculeRecords, pairs: PairList, gradient: bool) -> PairListTask:
        """Copy a pair list to the device."""
        second = pairs.second.astype(np.uint32)
        if pairs.one_four is not None:
            second |= np.where(pairs.one_four, np.uint32(ONE_FOUR), np.uint32(0))
        buffer = queue.upload(np.column_stack([pairs.first.astype(np.uint32), second]), np.uint32)
        return cls(molecule, len(pairs), buffer, _own_values(queue, molecule, pairs), gradient)

    @property
    def n_atoms(self) -> int:
        return len(self.molecule.atoms)

    @property
    def own_arguments(self) -> Arguments:
        """Kernel arguments `sigma2` and `charges`; empty if the list gives no values."""
        return dict(zip(("sigma2", "charges"), self.own, strict=True)) if self.own else {}

    @property
    def macros(self) -> dict[str, int]:
        return {**self.molecule.macros, "GRADIENT": int(self.gradient), "OWN_VALUES": int(bool(self.own))}


def _own_values(queue: Queue, molecule: MoleculeRecords, pairs: PairList) -> tuple[Buffer, ...]:
    """Upload values given by the list; if it gives only one kind, the other is computed from the atoms."""
    if pairs.sigma2 is None and pairs.charge_products is None:
        return ()
    atoms, i, j = molecule.atoms, pairs.first, pairs.second
    sigma2, charges = pairs.sigma2, pairs.charge_products
    if sigma2 is None:
        assert atoms.lj_sigma is not None
        a, b = atoms.lj_sigma[i], atoms.lj_sigma[j]
        sigma2 = a * b if atoms.combining == "geometric" else ((a + b) / 2) ** 2
    if charges is None:
        charges = atoms.charges[i] * atoms.charges[j]
    return queue.upload(sigma2), queue.upload(charges)
