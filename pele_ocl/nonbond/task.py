"""A pair list on its device: what the variants take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..opencl.interface import ONE_FOUR
from ..pairs import PairList
from .records import MoleculeRecords

if TYPE_CHECKING:
    from ..opencl.kernel import Arguments
    from ..opencl.memory import Buffer
    from ..opencl.queue import Queue


@dataclass(frozen=True, eq=False)
class PairListTask:
    """A pair list on its device with the molecule it is for.

    pairs : buffer (n_pairs, 2) uint32; own : buffers of sigma^2 and charge products, or empty
    gradient : whether it is wanted
    """

    molecule: MoleculeRecords
    n_pairs: int
    pairs: Buffer
    own: tuple[Buffer, ...]
    gradient: bool

    @classmethod
    def of(cls, queue: Queue, molecule: MoleculeRecords, pairs: PairList, gradient: bool) -> PairListTask:
        """A pair list brought to the device."""
        second = pairs.second.astype(np.uint32)
        if pairs.one_four is not None:
            second |= np.where(pairs.one_four, np.uint32(ONE_FOUR), np.uint32(0))
        buffer = queue.upload(np.column_stack([pairs.first.astype(np.uint32), second]), np.uint32)
        return cls(molecule, len(pairs), buffer, _own_values(queue, molecule, pairs), gradient)

    @property
    def n_atoms(self) -> int:
        return len(self.molecule.atoms)

    @property
    def own_arguments(self) -> Arguments:
        """Arguments `sigma2` and `charges` of kernels over pairs, none if all values are the atoms'."""
        return dict(zip(("sigma2", "charges"), self.own, strict=True)) if self.own else {}

    @property
    def macros(self) -> dict[str, int]:
        """Build definitions of kernels that compute pairs."""
        return {**self.molecule.macros, "GRADIENT": int(self.gradient), "OWN_VALUES": int(bool(self.own))}


def _own_values(queue: Queue, molecule: MoleculeRecords, pairs: PairList) -> tuple[Buffer, ...]:
    """Buffers of what the list brings itself; what it lacks of the two is filled in from the atoms."""
    if pairs.sigma2 is None and pairs.charge_products is None:
        return ()
    atoms, i, j = molecule.atoms, pairs.first, pairs.second
    sigma2, charges = pairs.sigma2, pairs.charge_products
    if sigma2 is None:
        assert atoms.lj_sigma is not None
        a, b = atoms.lj_sigma[i], atoms.lj_sigma[j]
        sigma2 = a * b if atoms.combining == "geometric" else ((a + b) / 2) ** 2
    if charges is None:
        charges = atoms.charges[i] * atoms.charges[j]
    return queue.upload(sigma2), queue.upload(charges)
