"""The baseline of every speed-up: one loop in one work-item."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..task import Task
from .passes import LadderPasses
from .scattered import cleared

if TYPE_CHECKING:
    from ...opencl.launch import KeptLaunch
    from ...opencl.run import Run


class Sequential(LadderPasses[None]):
    """One loop over the list in one work-item."""

    @classmethod
    def prepare(cls, run: Run, task: Task) -> None:
        return None

    def _n_groups(self) -> int:
        return 1

    def _clear(self) -> list[KeptLaunch]:
        return [cleared(self)] if self.task.gradient else []

    def _pairs(self) -> list[KeptLaunch]:
        return [
            self.run.keep(
                "nonbond/ladder/sequential.cl", "nonbond_sequential", (1, 1), (1, 1),
                *self._list_arguments(self.task), *self.named("energies", "results"), **self.task.macros,
            )
        ]  # fmt: skip
