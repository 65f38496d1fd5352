"""The passes of `rows`: several work-items walk all pairs of an atom, and nothing is scattered."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..opencl.shared import Role
from .index import Segments, segments_by_counting
from .ladder.scattered import EnergiesAlone
from .passes import AnyPasses, ListPasses
from .task import Task

if TYPE_CHECKING:
    from ..opencl.launch import KeptLaunch
    from ..opencl.run import Run

GROUP = 128
LANES = 32  # work-items an atom


class Rows(ListPasses[Segments]):
    """One launch over all atoms; energies alone are had from each pair once."""

    def __init__(self, run: Run, task: Task, index: Segments, most: int) -> None:
        _, self.group = run.group_kernel("nonbond/rows.cl", "nonbond_rows", local_reals=3, most=GROUP, **_macros(task))
        super().__init__(run, task, index, most)

    @classmethod
    def prepare(cls, run: Run, task: Task) -> Segments:
        return segments_by_counting(run, task.pairs, task.n_pairs, task.n_atoms, Role.BOTH)

    @classmethod
    def for_task(cls, task: Task) -> type[AnyPasses]:
        return cls if task.gradient else EnergiesAlone

    def _n_groups(self) -> int:
        return -(-self.task.n_atoms * min(LANES, self.group) // self.group)

    def _pairs(self) -> list[KeptLaunch]:
        assert self.index.neighbours is not None
        own = (self.index.pairs, *self.task.own) if self.task.own else ()
        return [
            self.run.keep(
                "nonbond/rows.cl", "nonbond_rows", (self.n_groups * self.group, 1), (self.group, 1),
                self.task.molecule.traits.model, np.int32(self.task.n_atoms), self.destination, self.index.offsets,
                self.index.neighbours, *own, *self.named("points", "traits"), self.energies, self.buffers["results"],
                GROUP=self.group, **_macros(self.task),
            )
        ]  # fmt: skip


def _macros(task: Task) -> dict[str, int]:
    return {"LANES": LANES, **task.macros}
