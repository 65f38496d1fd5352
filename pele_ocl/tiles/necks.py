"""Necks of a molecule's pairs of atoms on the device; cl/physics/neck.clh."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..atoms import Floats
from ..gb_models import Necks

if TYPE_CHECKING:
    from ..opencl.binding import Array, Binder
    from ..opencl.kernel import Arguments


@dataclass(frozen=True, eq=False)
class NeckTables:
    """Buffers of kernels that meet necks, NECK_ARGUMENTS.

    n_kinds : kinds of atoms; the last one has no necks
    kinds : (n_slots,) of each slot
    necks : (n_kinds, n_kinds, 4), for vectors (n_kinds, 4, n_slots)
    """

    n_kinds: int
    kinds: Array
    necks: Array

    @classmethod
    def of(
        cls, queue: Binder, necks: Necks, order: NDArray[np.intp], used: NDArray[np.bool_], width: int
    ) -> NeckTables:
        """Upload the tables for kernels of vectors of this width.

        order, used : (n_slots,) the atom of each slot, and whether the slot is that atom's place
        """
        none = len(necks.radii)
        kinds = np.where(used, necks.kinds[order], none)
        table = _by_kinds(necks)
        if width > 1:
            table = np.ascontiguousarray(table[:, kinds].transpose(0, 2, 1))
        return cls(none + 1, queue.upload(kinds, np.int32), queue.upload(table))

    @property
    def arguments(self) -> Arguments:
        """NECK_ARGUMENTS."""
        return dict(n_kinds=self.n_kinds, kinds=self.kinds, necks=self.necks)


def _by_kinds(necks: Necks) -> Floats:
    """List d0 and m0 that an atom takes from one of the first kind, then what it gives, (n_kinds, n_kinds, 4)."""
    n = len(necks.radii) + 1
    table = np.zeros((n, n, 4))
    taken = np.stack([necks.distances, necks.sizes], axis=2)
    table[:-1, :-1] = np.concatenate([taken, taken.transpose(1, 0, 2)], axis=2)
    return table
