"""Spheres and charges of a molecule's tiles, which stay the same for all conformations, on the device."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..atoms import Atoms, Floats
from ..atoms.charges import rounded_charges
from ..solvent_model import SolventModel
from ..tiles import Tiles
from .series import series_coefficients

if TYPE_CHECKING:
    from ..opencl.memory import Buffer
    from ..opencl.run import Run


@dataclass(frozen=True, eq=False)
class SphereTables:
    """Buffers of the atoms in the order of the tiles' slots; unused slots hold spheres of no radius and no charge.

    largest_rho : A, of all atoms
    order, counts : (n_slots,) the atom of each slot, (n_tiles,) atoms of each tile
    rho, scaled, charges : (n_slots,) offset radius, scaled radius, charge
    coefficients : (n_slots, 8) of the HCT series, the first is left free
    coefficient_columns : (READY_TERMS, n_slots) the same as columns
    largest_s : (n_tiles,) largest scaled radius
    """

    largest_rho: float
    order: Buffer
    counts: Buffer
    rho: Buffer
    scaled: Buffer
    charges: Buffer
    coefficients: Buffer
    coefficient_columns: Buffer
    largest_s: Buffer

    @classmethod
    def of(cls, run: Run, atoms: Atoms, tiles: Tiles, model: SolventModel, charges: Floats) -> SphereTables:
        """The tables of a molecule. charges : (n,) in the unit that the kernels want"""
        assert atoms.gb_radii is not None
        assert atoms.gb_scales is not None
        rho, scaled = model.gb_model.spheres(atoms.gb_radii, atoms.gb_scales, model.offset)
        by_slot = tiles.by_slot(scaled)
        coefficients = series_coefficients(by_slot)
        return cls(
            float(rho.max()),
            run.upload(tiles.order, np.int32),
            run.upload(tiles.counts, np.int32),
            run.upload(rho[tiles.order]),
            run.upload(by_slot),
            run.upload(tiles.by_slot(charges)),
            run.upload(np.column_stack([np.zeros(tiles.n_slots), coefficients.T])),
            run.upload(coefficients),
            run.upload(tiles.largest(scaled)),
        )


def scaled_charges(atoms: Atoms, model: SolventModel, precision: str) -> Floats:
    """Charges times the root of Coulomb's constant over the solute dielectric, (n,)."""
    charges: Floats = atoms.charges * math.sqrt(model.coulomb_constant / model.solute_dielectric)
    return rounded_charges(charges).astype(np.float64) if precision == "float32" else charges
