"""Spheres, necks and charges of a molecule in tiles, on the device; independent of conformations."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Floats
from ..atoms.charges import rounded_charges
from ..common.variant import PRECISIONS
from ..gb_models import Necks, Spheres
from ..gb_models.necks import REACH
from ..gb_models.solvent_model import SolventModel
from ..opencl.interface import REACHES, READY_TERMS, SANDER_TERMS
from .tiles import Tiles

if TYPE_CHECKING:
    from ..opencl.binding import Array, Binder
    from ..opencl.kernel import Arguments


@dataclass(frozen=True, eq=False)
class NeckTables:
    """Buffers of neck parameters, NECK_PARAMETERS.

    n_kinds : number of atom kinds; the last kind has no necks
    kinds : (n_slots,) kind of each slot
    necks : (n_kinds, n_kinds, 4), for vectors (n_kinds, 4, n_slots)
    """

    n_kinds: int
    kinds: Array
    necks: Array

    @classmethod
    def of(
        cls, queue: Binder, necks: Necks, order: NDArray[np.intp], used: NDArray[np.bool_], width: int
    ) -> NeckTables:
        """Upload the tables for kernels with vectors of a width.

        order, used : (n_slots,) atom of each slot, and whether the slot is used
        """
        none = len(necks.radii)
        kinds = np.where(used, necks.kinds[order], none)
        table = _by_kinds(necks)
        if width > 1:
            table = np.ascontiguousarray(table[:, kinds].transpose(0, 2, 1))
        return cls(none + 1, queue.upload(kinds, np.int32), queue.upload(table))

    @property
    def arguments(self) -> Arguments:
        return dict(n_kinds=self.n_kinds, kinds=self.kinds, necks=self.necks)


def _by_kinds(necks: Necks) -> Floats:
    """Table (n_kinds, n_kinds, 4) of d0 and m0 of pairs of kinds, followed by those of the exchanged pair."""
    n = len(necks.radii) + 1
    table = np.zeros((n, n, 4))
    taken = np.stack([necks.distances, necks.sizes], axis=2)
    table[:-1, :-1] = np.concatenate([taken, taken.transpose(1, 0, 2)], axis=2)
    return table


# Distances in scaled radii beyond which the series without logarithm is used, and numbers of terms; truncation errors
# are in docs/theory/solvent.md, "Far pairs". For pairs: FAR, and CLOSED where terms are cheaper than another closed
# form. For whole tiles: FAR_A, FAR_B and FAR_C.
SERIES = {
    "float32": {"CLOSED": (3, 7), "FAR": (4, 5), "FAR_A": (5, 4), "FAR_B": (8, 3), "FAR_C": (20, 2)},
    "float64": {"CLOSED": (4, 10), "FAR": (4, 10), "FAR_A": (7, 7), "FAR_B": (12, 5), "FAR_C": (24, 4)},
}


def series_macros(precision: str) -> dict[str, int]:
    """Build definitions of the distances and numbers of terms."""
    assert precision in PRECISIONS
    macros = {}
    for distance, (scaled_radii, terms) in SERIES[precision].items():
        macros[distance] = scaled_radii
        macros[distance.replace("FAR", "TERMS") if "FAR" in distance else "CLOSED_TERMS"] = terms
    return macros


def series_coefficients(scaled: Floats, series_first: bool = False) -> Floats:
    """k/(2k+1) s^(2k+1) for k = 1 to READY_TERMS, the coefficients of r^-(2k+2) in eq. 4; (READY_TERMS, n).

    series_first : whether negative spheres have only SANDER_TERMS terms, as in SolventModel
    """
    k = np.arange(1, READY_TERMS + 1)[:, None]
    coefficients: Floats = k / (2 * k + 1) * scaled ** (2 * k + 1)
    if series_first:
        coefficients[SANDER_TERMS:, scaled < 0] = 0
    return coefficients


@dataclass(frozen=True, eq=False)
class SphereTables:
    """Buffers of the atoms in the order of slots; unused slots have spheres of zero radius and charge.

    reaches : Reaches of pele_ocl/opencl/interface.py
    order, counts : (n_slots,) atom of each slot, (n_tiles,) number of atoms in each tile
    rho, scaled, charges : (n_slots,) offset radius, scaled radius, charge
    coefficients : (n_slots, 8) of the HCT series; the first entry is unused
    coefficient_columns : (READY_TERMS, n_slots) the same by columns
    largest_s : (n_tiles,) largest absolute value of scaled radii
    intrinsic : (n_slots,) radius before the offset is subtracted
    constants : (n_slots, 4) of the radius function by atom, or None
    necks : NeckTables or None
    """

    reaches: np.void
    order: Array
    counts: Array
    rho: Array
    scaled: Array
    charges: Array
    coefficients: Array
    coefficient_columns: Array
    largest_s: Array
    intrinsic: Array
    constants: Array | None
    necks: NeckTables | None

    @classmethod
    def of(
        cls, queue: Binder, atoms: Atoms, tiles: Tiles, model: SolventModel, charges: Floats, width: int
    ) -> SphereTables:
        """Upload the tables of a molecule.

        charges : (n,) in the unit of the kernels
        width : reals in a vector of kernels with necks
        """
        spheres = model.spheres(atoms)
        by_slot = tiles.by_slot(spheres.scaled)
        coefficients = series_coefficients(by_slot, model.series_first)
        constants, necks = spheres.constants, None
        if spheres.necks is not None:
            necks = NeckTables.of(queue, spheres.necks, tiles.order, tiles.used, width)
        return cls(
            packed_reaches(queue, spheres, model),
            queue.upload(tiles.order, np.int32),
            queue.upload(tiles.counts, np.int32),
            queue.upload(spheres.rho[tiles.order]),
            queue.upload(by_slot),
            queue.upload_parameters(tiles.by_slot(charges)),
            queue.upload(np.column_stack([np.zeros(tiles.n_slots), coefficients.T])),
            queue.upload(coefficients),
            queue.upload(tiles.largest(np.abs(spheres.scaled))),
            queue.upload(spheres.radii[tiles.order]),
            None if constants is None else queue.upload(constants[tiles.order]),
            necks,
        )


def packed_reaches(queue: Binder, spheres: Spheres, model: SolventModel) -> np.void:
    """Pack the ranges of spheres and necks for kernels."""
    necks = spheres.necks
    return REACHES.pack(
        queue.precision,
        largest_rho=float(spheres.rho.max()),
        neck_excess=0.0 if necks is None else REACH / 2 + model.offset,
        neck=0.0 if necks is None else necks.reach,
        rgb_max=0.0 if model.born_cutoff is None else model.born_cutoff,
    )


def scaled_charges(atoms: Atoms, model: SolventModel, precision: str) -> Floats:
    """Charges times the square root of Coulomb's constant over the solute dielectric, (n,)."""
    charges: Floats = atoms.charges * math.sqrt(model.coulomb_constant / model.solute_dielectric)
    return rounded_charges(charges).astype(np.float64) if precision == "float32" else charges
