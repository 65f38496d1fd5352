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
from .term import ITEMS, Addend, TermContext

if TYPE_CHECKING:
    from ...opencl.launch import BoundLaunch

MOST = 1e30  # A^2; no pair is so far
_TERMS = ("coulomb", "coulomb_14", "gb_pair")


class DielectricCorrections(Addend):
    """Coulomb and GB energies with the lesser 1/eps of each pair, less what the passes have with one for all."""

    merges_names: ClassVar[bool] = True

    def __init__(self, atoms: Atoms, model: SolventModel, names: Sequence[str], cutoff: float | None) -> None:
        """names : of the terms that count; cutoff : of the pairs, A; None for all"""
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
        """True if there are such pairs."""
        return len(self._special) > 0 and len(self._names) > 0

    @property
    def names(self) -> tuple[str, ...]:
        return self._names

    def launches(self, context: TermContext, index: int) -> list[BoundLaunch]:
        run, n, tiles = context.run, len(context.atoms), context.tiles
        terms = [index + self._names.index(name) if name in self._names else -1 for name in _TERMS]
        slots = np.empty(n, np.int64)
        slots[tiles.order[tiles.used]] = np.flatnonzero(tiles.used)
        charges = scaled_charges(context.atoms, self._model, run.precision)
        starts = np.searchsorted(self._first, np.arange(n + 1))
        arguments = dict(
            n_atoms=n, n_slots=tiles.n_slots, n_special=len(self._special), n_rows=context.n_energies,
            step=context.encoding.step, cutoff2=self._cutoff2,
            atoms=run.upload(np.column_stack([charges, self._inverses])), special=run.upload(self._special, np.int32),
            slots=run.upload(slots, np.int32), starts=run.upload(starts, np.int32),
            partners=run.upload(self._second, np.int32), scaled=run.upload(self._products),
            **dict(zip(("coulomb_term", "scaled_term", "gb_term"), terms, strict=True)),
            **{name: context.buffers[name] for name in ("positions", "born", "results")},
        )  # fmt: skip
        return [
            run.bind(
                "energy/terms/dielectric.cl", "correct_dielectric", (n * ITEMS, 1), (ITEMS, 1), arguments, ITEMS=ITEMS,
                SCREENED=0, **context.macros,
            )
        ]  # fmt: skip
