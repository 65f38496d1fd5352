"""Lennard-Jones parameters, masks and slopes of a molecule's tiles, on the device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Floats, Ints
from ..gb_models.solvent_model import SolventModel
from ..opencl.interface import READY_TERMS
from ..tiles import Tiles
from ..tiles.tables import scaled_charges, series_coefficients

if TYPE_CHECKING:
    from ..opencl.binding import Array, Binder

BITS = 32  # of a word

# Pairs of tiles up to which those that occur are found by a table of all; it is many times as fast as sorting.
MOST_COUNTED = 1 << 24


@dataclass(frozen=True)
class TileOrder:
    """Order in which kernels meet tiles.

    ring : whether a tile meets half a ring of tiles, itself first; otherwise all tiles in rising order
    own_vectors : whether the atoms of its own tile lie in vectors; otherwise they come one by one
    row_tiles : tiles of a row of tiles, which takes its steps in the ring together
    """

    ring: bool
    own_vectors: bool
    row_tiles: int = 1


@dataclass(frozen=True, eq=False)
class Masks:
    """Masked partners of each tile, the tile itself among them, and the bits of each.

    starts : (n_tiles + 1,) first partner of each tile
    partners : (n_masked,) tiles, in the order in which a kernel meets them
    words : (n_masked, 2, n_words, tile) of each atom that a kernel holds in a vector, a bit for every atom it meets;
        the first kind marks excluded pairs, an atom and itself among them; the second kind marks an atom and itself
    """

    starts: Ints
    partners: Ints
    words: NDArray[np.uint32]

    @classmethod
    def of(cls, tiles: Tiles, excluded: Ints, order: TileOrder) -> Masks:
        """Make the masks of a molecule for kernels that meet its tiles in this order.

        excluded : (k, 2) pairs of atoms
        """
        ring, own_vectors, row_tiles = order.ring, order.own_vectors, order.row_tiles
        n_tiles, size = len(tiles), tiles.size
        n_rows, n_words = -(-n_tiles // row_tiles), -(-size // BITS)
        itself = np.flatnonzero(tiles.used)
        i, j = tiles.slots[excluded].T
        held, met = np.concatenate([itself, itself, i, j]), np.concatenate([itself, itself, j, i])
        kinds = np.zeros(len(held), np.int64)
        kinds[len(itself) : 2 * len(itself)] = 1
        held_tile, met_tile = held // size, met // size
        tile, partner = (held_tile, met_tile) if own_vectors else (met_tile, held_tile)
        own_row, step = tile // row_tiles, partner // row_tiles
        within = partner - step * row_tiles
        if ring:
            step = step - own_row
            step += n_rows * (step < 0)
        key = (tile * n_rows + step) * row_tiles + within
        met = met - met_tile * size
        word = met // BITS
        places = (kinds * n_words + word) * size + held - held_tile * size
        bits = np.uint32(1) << (met - word * BITS).astype(np.uint32)
        if ring:
            kept = step <= (n_rows - (2 * own_row < n_rows)) // 2
            key, places, bits = key[kept], places[kept], bits[kept]
        tile_pairs, which = _numbered(key, n_tiles * n_rows * row_tiles)
        words = np.zeros((len(tile_pairs), 2, n_words, size), np.uint32)
        np.bitwise_or.at(words.reshape(-1), which * (2 * n_words * size) + places, bits)
        own_tiles, placed = np.divmod(tile_pairs, n_rows * row_tiles)
        starts = np.searchsorted(own_tiles, np.arange(n_tiles + 1)).astype(np.int32)
        if ring:
            step, within = np.divmod(placed, row_tiles)
            placed = (own_tiles // row_tiles + step) % n_rows * row_tiles + within
        return cls(starts, placed.astype(np.int32), words)


def _numbered(values: Ints, end: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Find the different ones of whole numbers from 0 to `end`, rising, and the place of each number among them."""
    if end > MOST_COUNTED:
        return np.unique(values, return_inverse=True)
    number = np.zeros(end, np.int64)
    number[values] = 1
    different = np.flatnonzero(number)
    number[different] = np.arange(len(different))
    return different, number[values]


@dataclass(frozen=True, eq=False)
class PairTables:
    """Buffers of the atoms in the order of the tiles' slots, for the passes over pairs.

    parameters : (6, n_slots) of SingleAtoms in cl/energy/terms.clh, offset radii first
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
