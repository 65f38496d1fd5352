"""Baseline of every speed-up: one loop in one work-item."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..task import PairListTask
from .passes import LadderPasses
from .scattered import cleared

if TYPE_CHECKING:
    from ...opencl.binding import Launch
    from ...opencl.queue import Queue


class Sequential(LadderPasses[None]):
    """One loop over the list in one work-item."""

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
