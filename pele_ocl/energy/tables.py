"""Lennard-Jones parameters, masks and slopes of a molecule's tiles, on the device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..atoms import Atoms, Floats, Ints
from ..gb_models.solvent_model import SolventModel
from ..opencl.interface import READY_TERMS
from ..tiles import Tiles
from ..tiles.series import series_coefficients
from ..tiles.tables import scaled_charges
from .masks import Masks, TileOrder

if TYPE_CHECKING:
    from ..opencl.binding import Array, Binder


@dataclass(frozen=True, eq=False)
class PairTables:
    """Buffers of the atoms in the order of the tiles' slots, for the passes over pairs.

    parameters : (6, n_slots) of ATOM_ARGUMENTS in cl/energy/terms.clh, offset radii first
    sigmas, epsilons : (n_slots,); unused slots have no well
    slopes, slope_columns : of the slope of the HCT series, for single atoms and for vectors
    masks : starts, partners and words of Masks, by the names that kernels have for them
    """

    parameters: Array
    sigmas: Array
    epsilons: Array
    slopes: Array
    slope_columns: Array
    masks: dict[str, Array]

    @classmethod
    def of(
        cls, queue: Binder, atoms: Atoms, tiles: Tiles, model: SolventModel, excluded: Ints, order: TileOrder,
        gb_self: bool = True, integrals: Floats | None = None,
    ) -> PairTables:  # fmt: skip
        """Upload the tables of a molecule for kernels that meet its tiles in this order.

        excluded : (k, 2) pairs without Lennard-Jones and Coulomb energy
        gb_self : whether atoms have GB energies of their own
        integrals : (n_slots,) what the passes leave out of Born integrals, 1/A; None for nothing
        """
        assert atoms.lj_sigma is not None
        assert atoms.lj_epsilon is not None
        spheres = model.spheres(atoms)
        sigma = np.sqrt(atoms.lj_sigma) if atoms.combining == "geometric" else atoms.lj_sigma / 2
        sigmas, epsilons = sigma[tiles.order], tiles.by_slot(np.sqrt(4 * atoms.lj_epsilon))
        charges = gb_self * tiles.by_slot(scaled_charges(atoms, model, queue.precision))
        coefficients = series_coefficients(tiles.by_slot(spheres.scaled), model.series_first)
        slopes = coefficients * (2 * np.arange(1, READY_TERMS + 1)[:, None] + 2)
        integrals = np.zeros(tiles.n_slots) if integrals is None else integrals
        parameters = spheres.rho[tiles.order], spheres.radii[tiles.order], charges, sigmas, epsilons, integrals
        return cls(
            queue.upload_parameters(np.stack(parameters)),
            queue.upload(sigmas),
            queue.upload_parameters(epsilons),
            queue.upload(np.column_stack([slopes.T, np.zeros(tiles.n_slots)])),
            queue.upload(slopes),
            _masks(queue, tiles, excluded, order),
        )


def _masks(queue: Binder, tiles: Tiles, excluded: Ints, order: TileOrder) -> dict[str, Array]:
    masks = Masks.of(tiles, excluded, order)
    words = masks.words.view(np.int32) if queue.precision == "float32" else masks.words.astype(np.int64)
    return dict(
        special_starts=queue.upload(masks.starts, np.int32), specials=queue.upload(masks.partners, np.int32),
        masks=queue.upload(words, words.dtype),
    )  # fmt: skip
