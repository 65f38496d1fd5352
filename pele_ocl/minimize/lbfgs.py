"""L-BFGS with a preconditioner: docs/theory/minimize.md, sections 1 and 2."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..energy.passes import AnyPasses
from ..opencl.interface import Descent, StepState
from .method import Method
from .preconditioner import Preconditioner, has_room, has_springs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..opencl.binding import Launch

HISTORY = 8  # number of pairs of steps and gradient changes
FIRST_LENGTH = 5e-4  # A^2 mol/kcal, factor of the gradient in the first step; safe for the stiffest bonds


class Lbfgs(Method):
    """L-BFGS, with one launch for sums and one for the step; for a single row both are joined in one."""

    history: ClassVar[int] = HISTORY
    descent: ClassVar[Descent] = Descent.LBFGS

    def own_arrays(self, n_atoms: int) -> Mapping[str, int]:
        return {"directions": 3 * n_atoms}

    @classmethod
    def preconditioner_of(cls, passes: AnyPasses) -> Preconditioner | None:
        return Preconditioner.of(passes) if has_room(passes) and has_springs(passes) else None

    def init(self, state: NDArray[Any]) -> None:
        state[StepState.LENGTH] = FIRST_LENGTH

    def step(self, before: str, after: str) -> list[Launch]:
        more = dict(sharing=self.sharing, descent=self.descent, **self.named("directions", "history"))
        if not self.may_join():
            step_on = self.moving("minimize/step.cl", "step_on", before, after, **more, **self.softened)
            return [self.measure(), step_on]
        if not self.cleared:
            self.cleared = "done", "done_next"
            self.arrays |= {name: self.queue.zeros(2, np.int32) for name in self.cleared}
        done, done_next = ("done", "done_next") if before == "state" else ("done_next", "done")
        arguments = dict(
            self.counts, moved=self.shape.moved, stopping=self.stopping, step=self.passes.encoding.step,
            before=self.arrays[before], after=self.arrays[after], done=self.arrays[done],
            done_next=self.arrays[done_next], **more, **self.blocks,
            **self.named("free", "sums", "positions", "results", "base", "base_gradient"),
        )  # fmt: skip
        n_groups = max(self.n_chunks, -(-self.n_atoms // self.shape.moved))
        return [
            self.bind(
                "minimize/iterate.cl", "iterate", (n_groups, self.n_rows + 1), arguments, ROUND=self.shape.round
            )
        ]  # fmt: skip

    def may_join(self) -> bool:
        """Return whether sums and step are joined: if waiting groups leave space for others on the device.

        This is only guaranteed on NVIDIA GPUs, with fewer waiting groups than multiprocessors.
        """
        device, n_waiting = self.queue.device, -(-self.n_atoms // self.shape.moved)
        has_room_there = n_waiting < device.handle.max_compute_units
        return not self.queue.is_shared and has_room_there and device.vendor == "NVIDIA"


METHOD = Lbfgs
