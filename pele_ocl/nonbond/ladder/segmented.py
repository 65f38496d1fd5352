"""Gradients stored by pair, then added up by atom over index lists."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ...opencl.interface import Role, Scatter
from ..index import Segments, segments_by_counting, segments_by_sorting
from ..passes import ITEMS, AnyPasses
from ..task import PairListTask
from .passes import GROUP
from .scattered import EnergiesAlone, PairPasses

if TYPE_CHECKING:
    from ...opencl.binding import Launch
    from ...opencl.queue import Queue


@dataclass(frozen=True, eq=False)
class Lists:
    """Pairs in the order of computing, and which of them each atom is the first and second of."""

    task: PairListTask
    firsts: Segments
    seconds: Segments


class Segmented(PairPasses[Lists]):
    """Two launches: pairs store their gradients, atoms add them up.

    sorting : whether index lists come from a sort of the pairs, or from counts and prefix sums
    kernel : that adds up
    """

    scatter = Scatter.STORED
    sorting: ClassVar[bool] = False
    kernel: ClassVar[str] = "segment_sums"

    def __init__(self, queue: Queue, task: PairListTask, index: Lists) -> None:
        super().__init__(queue, task, index)
        self._adding = {"SORTED_FIRSTS": int(self.sorting)}
        _, self.adders = queue.group_kernel(
            "nonbond/ladder/segments.cl",
            self.kernel,
            local_reals=3,
            most=queue.device.ladder_group or GROUP,
            **self._adding,
        )

    @classmethod
    def prepare(cls, queue: Queue, task: PairListTask) -> Lists:
        sizes = task.n_pairs, task.n_atoms
        if cls.sorting:
            task, firsts = _sorted_by_first(queue, task)
            return Lists(task, firsts, segments_by_sorting(queue, task.pairs, *sizes, Role.SECONDS))
        firsts = segments_by_counting(queue, task.pairs, *sizes, Role.FIRSTS)
        return Lists(task, firsts, segments_by_counting(queue, task.pairs, *sizes, Role.SECONDS))

    @classmethod
    def for_task(cls, task: PairListTask) -> type[AnyPasses]:
        return cls if task.gradient else EnergiesAlone

    def _sizes(self) -> dict[str, int]:
        return {"stored": 3 * self.task.n_pairs}

    def _pairs(self) -> list[Launch]:
        stored, firsts, seconds = self.buffers["stored"], self.index.firsts, self.index.seconds
        arguments = dict(
            n_atoms=self.task.n_atoms, n_pairs=self.task.n_pairs, stored=stored, firsts=firsts.pairs,
            first_offsets=firsts.offsets, seconds=seconds.pairs, second_offsets=seconds.offsets,
            gradient=self.buffers["results"],
        )  # fmt: skip
        shape, group = self._adders()
        add = self.queue.bind(
            "nonbond/ladder/segments.cl", self.kernel, (shape, 1), (group, 1), arguments, GROUP=self.adders,
            **self._adding,
        )  # fmt: skip
        return [self._launch_pairs(self.index.task, stored), add]

    def _adders(self) -> tuple[int, int]:
        """Work-items of the kernel that adds up, and how many in a group."""
        return self.task.n_atoms, ITEMS


class Bitonic(Segmented):
    """Pairs sorted by a bitonic network."""

    sorting = True


class Offsets(Segmented):
    """Index lists by prefix sums, a work-item an atom adds."""


class OffsetsGroup(Segmented):
    """Index lists by prefix sums, a work-group an atom adds."""

    kernel = "group_sums"

    def _adders(self) -> tuple[int, int]:
        return self.task.n_atoms * self.adders, self.adders


def _sorted_by_first(queue: Queue, task: PairListTask) -> tuple[PairListTask, Segments]:
    """Sort the task's pairs by their first atom, and find the segments."""
    n = task.n_pairs
    firsts = segments_by_sorting(queue, task.pairs, n, task.n_atoms, Role.FIRSTS)
    pairs, own = queue.empty(2 * n, np.uint32), tuple(queue.empty(n) for _ in task.own)
    permute = queue.kernel("nonbond/pair_index.cl", "permute_pairs")
    sizes = dict(n_pairs=n, order=firsts.pairs)
    queue.launch(permute, (n,), (ITEMS,), dict(pairs=task.pairs, permuted=pairs, **sizes))
    permute = queue.kernel("nonbond/pair_index.cl", "permute_reals")
    for before, after in zip(task.own, own, strict=True):
        queue.launch(permute, (n,), (ITEMS,), dict(values=before, permuted=after, **sizes))
    return replace(task, pairs=pairs, own=own), firsts
