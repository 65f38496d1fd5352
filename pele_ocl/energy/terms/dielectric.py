"""Pairs of atoms with dielectric constants of their own (VDGBNP), which correct the sums over all pairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ...atoms import Atoms
from ...pairs import nonbonded_pairs
from ...pairs.dielectric import inverse_dielectrics
from ...solvent_model import SolventModel
from ...tiled.tables import scaled_charges
from .term import Addend

if TYPE_CHECKING:
    from ...opencl.launch import KeptLaunch
    from ..passes import AnyPasses

ITEMS = 64  # of a work-group
MOST = 1e30  # A^2; no pair is so far
_TERMS = ("coulomb", "coulomb_14", "gb_pair")


class DielectricCorrections(Addend):
    """Coulomb and GB energies with the lesser 1/eps of each pair, less what the passes have with one constant for all."""

    joins: ClassVar[bool] = True

    def __init__(self, atoms: Atoms, model: SolventModel, names: Sequence[str], cutoff: float | None) -> None:
        """names : of the terms that count; cutoff : of the pairs, A; None for all"""
        self._names = tuple(name for name in _TERMS if name in names)
        self._cutoff2 = MOST if cutoff is None else cutoff**2
        self._model = model
        self._inverses = inverse_dielectrics(atoms, model)
        self._special = np.flatnonzero(self._inverses < 1)
        pairs = nonbonded_pairs(atoms)
        products = np.concatenate(
            [np.zeros(len(pairs.excluded) - len(pairs.one_four)), pairs.one_four.parameters[:, 0] * model.coulomb_factor]
        )
        both = np.concatenate([pairs.excluded, pairs.excluded[:, ::-1]])
        counts = np.minimum(*self._inverses[both].T) < 1
        order = np.lexsort((both[counts, 1], both[counts, 0]))
        self._first, self._second = both[counts][order].T
        self._products = np.tile(products, 2)[counts][order]

    def __bool__(self) -> bool:
        """Whether there are such pairs."""
        return len(self._special) > 0 and len(self._names) > 0

    @property
    def names(self) -> tuple[str, ...]:
        return self._names

    def launches(self, passes: AnyPasses, index: int) -> list[KeptLaunch]:
        run, encoding, n, tiles = passes.run, passes.encoding, len(passes.atoms), passes.tiles
        terms = [index + self._names.index(name) if name in self._names else -1 for name in _TERMS]
        slots = np.empty(n, np.int64)
        slots[tiles.order[tiles.used]] = np.flatnonzero(tiles.used)
        charges = scaled_charges(passes.atoms, self._model, run.precision)
        return [
            run.keep(
                "energy/terms/dielectric.cl", "correct_dielectric", (n * ITEMS, 1), (ITEMS, 1), np.int32(n),
                np.int32(tiles.n_slots), np.int32(len(self._special)), np.int32(passes.n_energies),
                *map(np.int32, terms), run.dtype.type(encoding.step), run.dtype.type(self._cutoff2),
                passes.buffers["positions"], run.upload(np.column_stack([charges, self._inverses])),
                run.upload(self._special, np.int32), run.upload(slots, np.int32),
                run.upload(np.searchsorted(self._first, np.arange(n + 1)), np.int32),
                run.upload(self._second, np.int32), run.upload(self._products), passes.buffers["born"],
                passes.buffers["results"], ITEMS=ITEMS, SCREENED=0, **encoding.macros, **passes.result_macros,
            )
        ]  # fmt: skip
