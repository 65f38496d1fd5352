"""Pairs with Lennard-Jones parameters of their own (NBFIX), which correct the sums over all pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ...atoms import Atoms
from ...pairs import lj_corrections, own_lj_pairs
from .term import TermContext, TermKernels

if TYPE_CHECKING:
    from ...opencl.binding import Launch

MOST = 1e30  # A^2; no pair is so far


class LennardJonesCorrections(TermKernels):
    """Lennard-Jones energy of pairs by their own parameters, less what the passes have by their atoms'."""

    merges_names: ClassVar[bool] = True

    def __init__(self, atoms: Atoms, cutoff: float | None) -> None:
        """cutoff : of the pairs, A; None for all"""
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
        """Return whether there are such pairs."""
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
