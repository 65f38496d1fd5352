"""Passes of the energy that leave sums over pairs at all slots."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from ..opencl.interface import PAIR_SUMS
from .passes import EnergyPasses, L

if TYPE_CHECKING:
    from ..opencl.binding import Launch
    from ..opencl.kernel import Arguments


class SumsOfPairs(EnergyPasses[L]):
    """Passes that leave a column of sums at all slots, in parts; cl/energy/sums.clh."""

    @property
    @abstractmethod
    def n_parts(self) -> int:
        """Parts in which the sums come."""

    def _sizes(self) -> dict[str, int]:
        return {"pair_sums": PAIR_SUMS * self.n_parts * self.slots_of_sums}

    @property
    def slots_of_sums(self) -> int:
        """Slots of which a part has sums."""
        return self.tiles.n_slots

    @property
    def _parts(self) -> Arguments:
        """Arguments that tell kernels how the sums come in parts."""
        return dict(n_parts=self.n_parts)

    @property
    def _parts_macros(self) -> dict[str, int]:
        """Build definitions of such kernels."""
        return {}

    def _finish(self) -> list[Launch]:
        return [
            self.each_slot(
                "energy/finish.cl", "finish",
                dict(counts=self.spheres.counts, **self.named("pair_sums"), **self._to_finish()), **self._finish_macros,
            )
        ]  # fmt: skip

    def _to_finish(self) -> Arguments:
        """FINISH_ARGUMENTS of cl/energy/finish.clh."""
        return dict(
            n_atoms=len(self.atoms), **self.result_sizes, per_atom=self.options.per_atom, **self._parts,
            order=self.spheres.order, **self.named("singles", "born", "results"),
        )  # fmt: skip

    @property
    def _finish_macros(self) -> dict[str, int]:
        return {**self.result_macros, **self.first_macros, **self._parts_macros}
