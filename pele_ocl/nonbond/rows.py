"""Passes of `rows`: several work-items sum all pairs of an atom, without scatter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..opencl.interface import Role
from .index import Segments, segments_by_counting
from .passes import AnyPasses, EnergiesAlone, ListPasses
from .records import PairListTask

if TYPE_CHECKING:
    from ..opencl.binding import Launch
    from ..opencl.kernel import Arguments
    from ..opencl.queue import Queue

GROUP, LANES = 128, 32  # work-items per group and per atom
# Below this number of atoms twice as many work-items per atom are used, since the longest neighbour list determines
# the time; not on CPUs, which run work-items one after another.
FEW = {"GPU": 2_000}
# Largest number of atoms of all conformations for which pairs compute the atom records themselves, which saves a
# launch where all pairs run at the same time.
MOST_WITHOUT_RECORDS = {"GPU": 16_000}


class Rows(ListPasses[Segments]):
    """One launch over all atoms. Without gradient, EnergiesAlone is used instead."""

    def __init__(self, queue: Queue, task: PairListTask, index: Segments) -> None:
        super().__init__(queue, task, index)
        times = 2 if task.n_atoms < FEW.get(queue.device.kind, 0) else 1
        self._macros = {"LANES": times * LANES, **task.macros}
        _, self.group = queue.group_kernel(
            "nonbond/rows.cl", "nonbond_rows", local_reals=3, most=times * GROUP, RECORDS=1, **self._macros
        )

    @property
    def has_records(self) -> bool:
        """Whether a separate launch makes the atom records."""
        most = MOST_WITHOUT_RECORDS.get(self.queue.device.kind, 0)
        return self._are_many or self.batch * self.task.n_atoms > most

    def _place(self) -> list[Launch]:
        return super()._place() if self.has_records else []

    @property
    def _records(self) -> Arguments:
        """Atom records, or the data from which they are computed."""
        if self.has_records:
            return self.named("points", "traits")
        order, gb = self._order(), self.task.molecule.gb
        of_radii = dict(traits=self._constants(order), **self.named("roots")) if gb else self.named("traits")
        return dict(atom_charges=self._charges(order), **self._in_steps, **self.named("positions"), **of_radii)

    @classmethod
    def prepare(cls, queue: Queue, task: PairListTask) -> Segments:
        return segments_by_counting(queue, task.pairs, task.n_pairs, task.n_atoms, Role.BOTH)

    @classmethod
    def for_task(cls, task: PairListTask) -> type[AnyPasses]:
        return cls if task.gradient else EnergiesAlone

    def _n_groups(self) -> int:
        return -(-self.task.n_atoms * min(self._macros["LANES"], self.group) // self.group)

    def _pairs(self) -> list[Launch]:
        assert self.index.neighbours is not None
        own = dict(pair_of=self.index.pairs, **self.task.own_arguments) if self.task.own else {}
        arguments = dict(
            constants=self.task.molecule.traits.model, n_atoms=self.task.n_atoms, to=self.destination,
            offsets=self.index.offsets, neighbours=self.index.neighbours, energies=self.energies, **own,
            **self._records, **self.named("results"),
        )  # fmt: skip
        return [
            self.queue.bind(
                "nonbond/rows.cl", "nonbond_rows", (self.n_groups * self.group, 1), (self.group, 1), arguments,
                GROUP=self.group, RECORDS=int(self.has_records), **self._macros,
                **({} if self.has_records else self.encoding.macros),
            )
        ]  # fmt: skip
