"""A work-item a pair: energies alone of all variants that walk a list, and what the ladder's rungs begin with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from ..opencl.interface import Scatter
from .passes import ITEMS, ListPasses
from .task import PairListTask

if TYPE_CHECKING:
    from ..opencl.binding import Array, Launch
    from ..opencl.queue import Queue
    from ..opencl.signature import Arguments

GROUP = 128
PAIRS_AN_ITEM = 4

Index = TypeVar("Index")


class PlainPasses(ListPasses[Index]):
    """Passes that take one conformation after the other, as the thesis has them."""

    most_conformations: ClassVar[int | None] = 1

    @property
    def _are_many(self) -> bool:
        return True  # in a buffer of their own, that the kernels stay as plain as can be

    def _list_arguments(self, task: PairListTask) -> Arguments:
        """LIST_ARGUMENTS of cl/nonbond/ladder/list.clh."""
        return dict(
            model=task.molecule.traits.model, n_pairs=task.n_pairs, pairs=task.pairs, **task.own_arguments,
            **self.named("points", "traits"),
        )  # fmt: skip


class PairPasses(PlainPasses[Index]):
    """Passes that begin with a work-item a pair.

    scatter : what becomes of a pair's gradient
    """

    scatter: ClassVar[Scatter]
    more_macros: ClassVar[dict[str, int]] = {}

    def __init__(self, queue: Queue, task: PairListTask, index: Index) -> None:
        super().__init__(queue, task, index)
        # On most GPUs float64 is slow, and is taken where it is asked for alone.
        doubles = queue.precision == "float64" or (queue.device.kind == "CPU" and queue.device.has_float64)
        self._macros = {"SCATTER": int(self.scatter), "DOUBLES": int(doubles), **self.more_macros, **task.macros}
        _, self.group = queue.group_kernel(
            "nonbond/ladder/pairs.cl",
            "nonbond_pairs",
            local_reals=6,
            most=queue.device.ladder_group or GROUP,
            **self._macros,
        )

    def _n_groups(self) -> int:
        return max(1, -(-self.task.n_pairs // (self.group * PAIRS_AN_ITEM)))

    def _launch_pairs(self, task: PairListTask, gradient: Array) -> Launch:
        return self.queue.bind(
            "nonbond/ladder/pairs.cl", "nonbond_pairs", (self.n_groups * self.group, 1), (self.group, 1),
            dict(gradient=gradient, **self._list_arguments(task), **self.named("energies")), GROUP=self.group,
            **self._macros,
        )  # fmt: skip


class Scattered(PairPasses[None]):
    """Passes whose pairs write to the gradient of the atoms."""

    @classmethod
    def prepare(cls, queue: Queue, task: PairListTask) -> None:
        return None

    @classmethod
    def for_task(cls, task: PairListTask) -> type[Scattered]:
        return cls if task.gradient else EnergiesAlone

    def _clear(self) -> list[Launch]:
        return [cleared(self)] if self.task.gradient else []

    def _pairs(self) -> list[Launch]:
        return [self._launch_pairs(self.task, self.buffers["results"])]


class EnergiesAlone(Scattered):
    """Each pair once, no gradient."""

    scatter = Scatter.NONE


def cleared(passes: PlainPasses[Any]) -> Launch:
    """Make the launch that fills the gradient with zeros."""
    n = passes.first_energy
    return passes.queue.bind(
        "nonbond/ladder/clear.cl", "clear", (n, 1), (ITEMS, 1), dict(n=n, gradient=passes.buffers["results"])
    )
