"""Spheres and charges of a molecule's tiles, which stay the same for all conformations, on the device."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..atoms import Atoms, Floats
from ..atoms.charges import rounded_charges
from ..gb_models import Spheres
from ..gb_models.necks import REACH
from ..gb_models.solvent_model import SolventModel
from ..opencl.interface import REACHES
from .series import series_coefficients
from .tiles import Tiles

if TYPE_CHECKING:
    from ..opencl.binding import Array, Binder
    from .necks import NeckTables


@dataclass(frozen=True, eq=False)
class SphereTables:
    """Buffers of the atoms in the order of the tiles' slots; unused slots hold spheres of no radius and no charge.

    reaches : Reaches of pele_ocl/opencl/interface.py
    order, counts : (n_slots,) the atom of each slot, (n_tiles,) atoms of each tile
    rho, scaled, charges : (n_slots,) offset radius, scaled radius, charge
    coefficients : (n_slots, 8) of the HCT series, the first is left free
    coefficient_columns : (READY_TERMS, n_slots) the same as columns
    largest_s : (n_tiles,) largest scaled radius, whatever its sign
    intrinsic : (n_slots,) radius before the offset is subtracted
    constants : (n_slots, 4) of the radius function by atom, else None
    necks : of pairs, else None
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

        charges : (n,) in the unit that the kernels want
        width : reals in a vector of the kernels that meet necks
        """
        spheres = model.spheres(atoms)
        by_slot = tiles.by_slot(spheres.scaled)
        coefficients = series_coefficients(by_slot, model.series_first)
        constants, necks = spheres.constants, None
        if spheres.necks is not None:
            from .necks import NeckTables

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
    """Pack how far spheres and necks reach, for kernels."""
    necks = spheres.necks
    return REACHES.pack(
        queue.precision,
        largest_rho=float(spheres.rho.max()),
        neck_excess=0.0 if necks is None else REACH / 2 + model.offset,
        neck=0.0 if necks is None else necks.reach,
        rgb_max=0.0 if model.born_cutoff is None else model.born_cutoff,
    )


def scaled_charges(atoms: Atoms, model: SolventModel, precision: str) -> Floats:
    """Charges times the root of Coulomb's constant over the solute dielectric, (n,)."""
    charges: Floats = atoms.charges * math.sqrt(model.coulomb_constant / model.solute_dielectric)
    return rounded_charges(charges).astype(np.float64) if precision == "float32" else charges
