"""Lennard-Jones parameters, exclusion masks and series of derivatives on the device, in the order of tiles."""

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

BITS = 32  # per word

# Largest number of pairs of tiles for which a lookup table finds those that occur, which is faster than sorting.
MOST_COUNTED = 1 << 24


@dataclass(frozen=True)
class TileOrder:
    """Order in which kernels visit tiles.

    ring : whether a tile visits half a ring of tiles, starting with itself; otherwise all tiles in ascending order
    own_vectors : whether vectors hold the atoms of the kernel's tile; otherwise they hold atoms of the visited tile
    row_tiles : number of tiles in a row, which moves around the ring as a whole
    """

    ring: bool
    own_vectors: bool
    row_tiles: int = 1


@dataclass(frozen=True, eq=False)
class Masks:
    """Partners of each tile that need exclusion masks, including the tile itself, and the masks.

    starts : (n_tiles + 1,) first partner of each tile
    partners : (n_masked,) tiles, in the order in which a kernel visits them
    words : (n_masked, 2, n_words, tile) for each atom in a vector, one bit per visited atom; the first kind marks
        excluded pairs, including each atom with itself; the second kind marks only each atom with itself
    """

    starts: Ints
    partners: Ints
    words: NDArray[np.uint32]

    @classmethod
    def of(cls, tiles: Tiles, excluded: Ints, order: TileOrder) -> Masks:
        """Create the masks for kernels that visit tiles in this order. excluded : (k, 2) pairs of atoms"""
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
    """Sorted unique integers below `end` and the inverse indices, as numpy.unique returns them."""
    if end > MOST_COUNTED:
        return np.unique(values, return_inverse=True)
    number = np.zeros(end, np.int64)
    number[values] = 1
    different = np.flatnonzero(number)
    number[different] = np.arange(len(different))
    return different, number[values]


@dataclass(frozen=True, eq=False)
class PairTables:
    """Parameters of the atoms in the order of the tiles' slots, for the passes over pairs.

    parameters : (6, n_slots) of SingleAtoms in cl/energy/terms.clh, offset radii first
    sigmas, epsilons : (n_slots,); epsilon is 0 in unused slots
    slopes, slope_columns : coefficients of the derivative of the HCT series, by atom and by column
    masks : starts, partners and words of Masks, by the names of kernel arguments
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
        """Upload the tables for kernels that visit tiles in this order.

        excluded : (k, 2) pairs without Lennard-Jones and Coulomb energy
        gb_self : whether to include GB self energies
        integrals : (n_slots,) Born integrals that the passes leave out, 1/A; None for none
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
