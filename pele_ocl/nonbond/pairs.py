"""A work-item per pair: energies alone, of `rows` and the ladder, and the part that rungs with gradients share."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, TypeVar

from .passes import ListPasses
from .task import PairListTask

if TYPE_CHECKING:
    from ..opencl.binding import Array, Launch
    from ..opencl.kernel import Arguments
    from ..opencl.queue import Queue

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
        """LIST_ARGUMENTS of cl/nonbond/list.clh."""
        return dict(
            model=task.molecule.traits.model, n_pairs=task.n_pairs, pairs=task.pairs, **task.own_arguments,
            **self.named("points", "traits"),
        )  # fmt: skip


class PairPasses(PlainPasses[Index]):
    """Passes that begin with one work-item per pair.

    pair_kernel : file and name of its kernel; pair_macros : of this kernel alone
    """

    pair_kernel: ClassVar[tuple[str, str]]
    pair_macros: ClassVar[dict[str, int]] = {}

    def __init__(self, queue: Queue, task: PairListTask, index: Index) -> None:
        super().__init__(queue, task, index)
        # On most GPUs float64 is slow, and is taken where it is asked for alone.
        doubles = queue.precision == "float64" or (queue.device.kind == "CPU" and queue.device.has_float64)
        self._macros = {"DOUBLES": int(doubles), **self.pair_macros, **task.macros}
        most = queue.device.ladder_group or GROUP
        file, kernel = self.pair_kernel
        _, self.group = queue.group_kernel(file, kernel, local_reals=6, most=most, **self._macros)

    def _n_groups(self) -> int:
        return max(1, -(-self.task.n_pairs // (self.group * PAIRS_AN_ITEM)))

    def _launch_pairs(self, task: PairListTask, **more: Array) -> Launch:
        file, kernel = self.pair_kernel
        return self.queue.bind(
            file, kernel, (self.n_groups * self.group, 1), (self.group, 1),
            dict(**more, **self._list_arguments(task), **self.named("energies")), GROUP=self.group, **self._macros,
        )  # fmt: skip


class EnergiesAlone(PairPasses[None]):
    """Each pair once, no gradient."""

    pair_kernel = "nonbond/pairs.cl", "pair_energies"

    @classmethod
    def prepare(cls, queue: Queue, task: PairListTask) -> None:
        return None

    def _pairs(self) -> list[Launch]:
        return [self._launch_pairs(self.task)]
