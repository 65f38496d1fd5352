"""Pairs with Lennard-Jones parameters of their own (NBFIX), which correct the sums over all pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ...atoms import Atoms
from ...pairs import lj_corrections, own_lj_pairs
from .term import Addend

if TYPE_CHECKING:
    from ...opencl.launch import KeptLaunch
    from ..passes import AnyPasses

ITEMS = 64  # of a work-group
MOST = 1e30  # A^2; no pair is so far


class LennardJonesCorrections(Addend):
    """The Lennard-Jones energy of pairs by their own parameters, less what the passes have by those of their atoms."""

    joins: ClassVar[bool] = True

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
        """Whether there are such pairs."""
        return len(self._first) > 0

    @property
    def names(self) -> tuple[str, ...]:
        return ("lennard_jones",)

    def launches(self, passes: AnyPasses, index: int) -> list[KeptLaunch]:
        run, encoding, n = passes.run, passes.encoding, len(passes.atoms)
        starts = np.searchsorted(self._first, np.arange(n + 1))
        return [
            run.keep(
                "energy/terms/lj_pairs.cl", "correct_lj_pairs", (n, 1), (ITEMS, 1), np.int32(n),
                np.int32(passes.n_energies), np.int32(index), run.dtype.type(encoding.step),
                run.dtype.type(self._cutoff2), passes.buffers["positions"], run.upload(starts, np.int32),
                run.upload(self._second, np.int32), run.upload(self._parameters), passes.buffers["results"],
                GEOMETRIC=0, **encoding.macros, **passes.result_macros,
            )
        ]  # fmt: skip
