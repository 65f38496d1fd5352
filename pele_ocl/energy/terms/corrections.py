"""Corrections for pairs with their own Lennard-Jones parameters (NBFIX) or dielectric constants (VDGBNP)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ...atoms import Atoms
from ...gb_models.solvent_model import SolventModel
from ...pairs import lj_corrections, nonbonded_pairs, own_lj_pairs
from ...pairs.dielectric import inverse_dielectrics
from ...tiles.tables import scaled_charges
from .term import ITEMS, TermContext, TermKernels

if TYPE_CHECKING:
    from ...opencl.binding import Launch

MOST = 1e30  # A^2, beyond any distance
_TERMS = ("coulomb", "coulomb_14", "gb_pair")  # terms that depend on dielectric constants


class LennardJonesCorrections(TermKernels):
    """Lennard-Jones energy of pairs with their own parameters, minus that computed by the passes."""

    merges_names: ClassVar[bool] = True

    def __init__(self, atoms: Atoms, cutoff: float | None) -> None:
        """cutoff : A; None for all pairs"""
        pairs = own_lj_pairs(atoms)
        self._cutoff2 = MOST if cutoff is None else cutoff**2
        self._first, self._second = np.concatenate([pairs.atoms, pairs.atoms[:, ::-1]]).astype(np.int64).T
        if not len(pairs):
            return
        columns = [of * [1.0, 4.0] for of in lj_corrections(atoms, pairs)]
        for of in columns:
            of[:, 0] **= 2
        order = np.lexsort((self._second, self._first))
        self._first, self._second = self._first[order], self._second[order]
        self._parameters = np.tile(np.concatenate(columns, axis=1), (2, 1))[order]

    def __bool__(self) -> bool:
        return len(self._first) > 0

    @property
    def names(self) -> tuple[str, ...]:
        return ("lennard_jones",)

    def launches(self, context: TermContext, index: int) -> list[Launch]:
        queue, starts = context.queue, np.searchsorted(self._first, np.arange(len(context.atoms) + 1))
        arguments = dict(
            cutoff2=self._cutoff2, starts=queue.upload(starts, np.int32), partners=queue.upload(self._second, np.int32),
            parameters=queue.upload(self._parameters),
        )  # fmt: skip
        return [context.bind("energy/terms/lj_pairs.cl", "correct_lj_pairs", index, arguments, GEOMETRIC=0)]


class DielectricCorrections(TermKernels):
    """Coulomb and GB energies with the smaller 1/eps of each pair, minus those computed by the passes."""

    merges_names: ClassVar[bool] = True

    def __init__(self, atoms: Atoms, model: SolventModel, names: Sequence[str], cutoff: float | None) -> None:
        """names : names of the computed terms; cutoff : A; None for all pairs"""
        self._names = tuple(name for name in _TERMS if name in names)
        self._cutoff2 = MOST if cutoff is None else cutoff**2
        self._model = model
        self._inverses = inverse_dielectrics(atoms, model)
        self._special = np.flatnonzero(self._inverses < 1)
        pairs = nonbonded_pairs(atoms)
        products = np.concatenate(
            [
                np.zeros(len(pairs.excluded) - len(pairs.one_four)),
                pairs.one_four.parameters[:, 0] * model.coulomb_factor,
            ]
        )
        both = np.concatenate([pairs.excluded, pairs.excluded[:, ::-1]])
        counts = np.minimum(*self._inverses[both].T) < 1
        order = np.lexsort((both[counts, 1], both[counts, 0]))
        self._first, self._second = np.ascontiguousarray(both[counts][order].T)
        self._products = np.tile(products, 2)[counts][order]

    def __bool__(self) -> bool:
        return len(self._special) > 0 and len(self._names) > 0

    @property
    def names(self) -> tuple[str, ...]:
        return self._names

    def launches(self, context: TermContext, index: int) -> list[Launch]:
        queue, tiles, buffers = context.queue, context.tiles, context.buffers
        terms = [index + self._names.index(name) if name in self._names else -1 for name in _TERMS]
        charges = tiles.by_slot(scaled_charges(context.atoms, self._model, queue.precision))
        inverses = np.where(tiles.used, self._inverses[tiles.order], 1.0)
        special = np.sort(tiles.slots[self._special])
        common = dict(
            n_tiles=len(tiles), n_atoms=len(context.atoms), n_special=len(special), **context.result_sizes,
            cutoff2=self._cutoff2, inverses=queue.upload(inverses), special=queue.upload(special, np.int32),
            order=queue.upload(np.where(tiles.used, tiles.order, -1), np.int32),
            **dict(zip(("coulomb_term", "scaled_term", "gb_term"), terms, strict=True)),
            **{name: buffers[name] for name in ("points", "x", "y", "z", "origins", "born", "results")},
        )  # fmt: skip
        all_pairs = dict(
            charges=queue.upload(charges), partners=queue.upload(tiles.slots[self._second], np.int32),
            starts=queue.upload(np.searchsorted(self._first, np.arange(len(context.atoms) + 1)), np.int32),
            scaled=queue.upload(self._products),
        )  # fmt: skip
        on_cpu = queue.device.kind == "CPU"
        items, width = (1, queue.device.vector_width(queue.precision)) if on_cpu else (ITEMS, 1)
        macros = {"ITEMS": items, "TILE": tiles.size, "SCREENED": 0, "width": min(width, tiles.size), **context.macros}
        file, n_vectors = "energy/terms/dielectric.cl", tiles.n_slots // macros["width"]
        others = queue.upload(np.where(inverses < 1, 0.0, charges))
        return [
            queue.bind(file, "correct_all", (n_vectors, 1), (items, 1), {**common, **all_pairs}, **macros),
            queue.bind(
                file, "correct_special", (len(special) * items, 1), (items, 1), {**common, "others": others}, **macros
            ),
        ]  # fmt: skip
