"""Ladder of the thesis for gradients over a pair list, from one loop to index lists; `naive` is wrong by design."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..nonbond import VARIANTS, Nonbond
from ..nonbond.index import ITEMS, Segments, segments_by_counting, split_keys
from ..nonbond.passes import GROUP, AnyPasses, EnergiesAlone, PairPasses, PlainPasses
from ..nonbond.records import PairListTask
from ..opencl.interface import Role, Scatter
from .rung import Rung

if TYPE_CHECKING:
    from ..opencl.binding import Launch
    from ..opencl.memory import Buffer
    from ..opencl.queue import Queue


WITH_GRADIENTS = ("nonbond/ladder/pairs.cl", "nonbond_pairs")  # file and name of the kernel


class Sequential(PlainPasses[None]):
    """One loop over the list in a single work-item."""

    @classmethod
    def prepare(cls, queue: Queue, task: PairListTask) -> None:
        return None

    def _n_groups(self) -> int:
        return 1

    def _clear(self) -> list[Launch]:
        return [cleared(self)] if self.task.gradient else []

    def _pairs(self) -> list[Launch]:
        return [
            self.queue.bind(
                "nonbond/ladder/sequential.cl", "nonbond_sequential", (1, 1), (1, 1),
                dict(
                    gradient=self.buffers["results"], **self.named("energies"), **self._list_arguments(self.task)
                ),
                **self.task.macros,
            )
        ]  # fmt: skip


class Scattered(PairPasses[None]):
    """Passes in which pairs add to the gradient of the atoms."""

    pair_kernel = WITH_GRADIENTS

    @classmethod
    def prepare(cls, queue: Queue, task: PairListTask) -> None:
        return None

    @classmethod
    def for_task(cls, task: PairListTask) -> type[AnyPasses]:
        return cls if task.gradient else EnergiesAlone

    def _clear(self) -> list[Launch]:
        return [cleared(self)]

    def _pairs(self) -> list[Launch]:
        return [self._launch_pairs(self.task, gradient=self.buffers["results"])]


class Naive(Scattered):
    """Non-atomic additions: work-items that share an atom lose updates; wrong by design."""

    pair_macros: ClassVar[dict[str, int]] = {"SCATTER": Scatter.NAIVE}


class Atomic(Scattered):
    """Atomic additions by compare-exchange."""

    pair_macros: ClassVar[dict[str, int]] = {"SCATTER": Scatter.ATOMIC, "NATIVE_ATOMICS": 0}

    @classmethod
    def prepare(cls, queue: Queue, task: PairListTask) -> None:
        if queue.precision == "float64":
            queue.device.require_int64_atomics()


class AtomicNative(Scattered):
    """Atomic additions by the device's instruction."""

    pair_macros: ClassVar[dict[str, int]] = {"SCATTER": Scatter.ATOMIC, "NATIVE_ATOMICS": 1}

    @classmethod
    def prepare(cls, queue: Queue, task: PairListTask) -> None:
        queue.device.require_float_atomics(queue.precision)


@dataclass(frozen=True, eq=False)
class Lists:
    """Pairs in the order of computation, and for each atom the pairs in which it is first or second."""

    task: PairListTask
    firsts: Segments
    seconds: Segments


class Segmented(PairPasses[Lists]):
    """Two launches: pairs store their gradients, then atoms sum them.

    sorting : whether index lists are made by sorting pairs, or by counting and prefix sums
    kernel : name of the kernel that sums
    """

    pair_kernel = WITH_GRADIENTS
    pair_macros: ClassVar[dict[str, int]] = {"SCATTER": Scatter.STORED}
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
        return [self._launch_pairs(self.index.task, gradient=stored), add]

    def _adders(self) -> tuple[int, int]:
        """Work-items of the kernel that sums, and work-items per group."""
        return self.task.n_atoms, ITEMS


class Bitonic(Segmented):
    """Index lists by a bitonic sort of the pairs."""

    sorting = True


class Offsets(Segmented):
    """Index lists by prefix sums, one work-item per atom."""


class OffsetsGroup(Segmented):
    """Index lists by prefix sums, one work-group per atom."""

    kernel = "group_sums"

    def _adders(self) -> tuple[int, int]:
        return self.task.n_atoms * self.adders, self.adders


def cleared(passes: PlainPasses[Any]) -> Launch:
    """Bind the launch that sets the gradient to zero."""
    n = passes.first_energy
    return passes.queue.bind(
        "nonbond/ladder/clear.cl", "clear", (n, 1), (ITEMS, 1), dict(n=n, gradient=passes.buffers["results"])
    )


def _sorted_by_first(queue: Queue, task: PairListTask) -> tuple[PairListTask, Segments]:
    """Sort the pairs by their first atom, and make their segments."""
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


def sort_keys(queue: Queue, keys: Buffer, n: int) -> None:
    """Sort n uint64 values in place, in ascending order, by a bitonic network."""
    # A key takes two reals of local memory in float32.
    sort, group = queue.group_kernel("nonbond/ladder/bitonic.cl", "sort_blocks", local_reals=4, most=256)
    block = 2 * group
    n_blocks = max(1, -(-n // block))
    shape, sorted_keys = (n_blocks * group,), dict(n=n, keys=keys)
    queue.launch(sort, shape, (group,), sorted_keys)
    span = 2 * block
    while span < 2 * n:
        step = queue.kernel("nonbond/ladder/bitonic.cl", "merge_step", GROUP=group)
        comparators = (-(-n // span) * span // 2,)
        queue.launch(step, comparators, (ITEMS,), dict(span=span, distance=0, **sorted_keys))
        distance = span // 4
        while distance >= block:
            queue.launch(step, comparators, (ITEMS,), dict(span=span, distance=distance, **sorted_keys))
            distance //= 2
        queue.launch(
            queue.kernel("nonbond/ladder/bitonic.cl", "merge_blocks", GROUP=group), shape, (group,), sorted_keys
        )
        span *= 2


def segments_by_sorting(queue: Queue, pairs: Buffer, n_pairs: int, n_atoms: int, role: Role) -> Segments:
    """Create segments by sorting keys of atom and pair number."""
    keys, offsets = queue.empty(n_pairs, np.uint64), queue.zeros(n_atoms + 1, np.int32)
    if n_pairs:
        make, find = (queue.kernel("nonbond/pair_index.cl", name) for name in ("make_keys", "find_offsets"))
        queue.launch(make, (n_pairs,), (ITEMS,), dict(n_pairs=n_pairs, role=role, pairs=pairs, keys=keys))
        sort_keys(queue, keys, n_pairs)
        queue.launch(
            find, (n_pairs + 1,), (ITEMS,), dict(n_pairs=n_pairs, n_atoms=n_atoms, keys=keys, offsets=offsets)
        )  # fmt: skip
    return Segments(offsets, *split_keys(queue, keys, n_pairs, False))


NONBOND: dict[str, Rung[type[AnyPasses]]] = {
    "sequential": Rung(
        "nonbond/ladder/sequential.cl", "nonbond_sequential", "one compiled loop over the list, on one CPU core",
        Sequential, cpu_only=True,
    ),
    "naive": Rung(
        "nonbond/ladder/pairs.cl", "nonbond_pairs", "one work-item per pair, with races: wrong", Naive, exact=False
    ),
    "atomic": Rung(
        "nonbond/ladder/pairs.cl", "nonbond_pairs", "one work-item per pair, atomic compare-exchange", Atomic
    ),
    "atomic-native": Rung(
        "nonbond/ladder/pairs.cl", "nonbond_pairs", "the same with the device's native atomic addition, if available",
        AtomicNative, float_atomics=True,
    ),
    "bitonic": Rung(
        "nonbond/ladder/bitonic.cl", "merge_step", "pairs sorted by a bitonic network, summed by atom", Bitonic
    ),
    "offsets": Rung(
        "nonbond/ladder/segments.cl", "segment_sums", "index lists by prefix sums, one work-item per atom", Offsets
    ),
    "offsets-group": Rung(
        "nonbond/ladder/segments.cl", "group_sums", "index lists by prefix sums, one work-group per atom",
        OffsetsGroup,
    ),
    **{name: Rung.of(variant) for name, variant in VARIANTS.items()},
}  # fmt: skip


class NonbondLadder(Nonbond):
    """Nonbond with any rung of the ladder, including the engine's variants; results say if updates may be lost."""

    variants = NONBOND
    _elsewhere = ""

    @property
    def _is_exact(self) -> bool:
        return NONBOND[self.variant].exact or not self.gradient
