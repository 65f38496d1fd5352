"""Truncated Newton: search directions by conjugate gradients, with curvature from gradient differences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from numpy.typing import NDArray

from ..energy.passes import AnyPasses
from ..opencl.interface import Descent, StepState
from .lbfgs import FIRST_LENGTH
from .method import Method
from .preconditioner import Preconditioner

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..opencl.binding import Launch


class Newton(Method):
    """Truncated Newton; cl/minimize/newton.cl. Each iteration is one evaluation, after a step or at a probe along p."""

    history: ClassVar[int] = 1  # one pair of vectors: preconditioned residual and direction of conjugate gradients
    each: ClassVar[int] = 16
    holds_bonds: ClassVar[bool] = False
    title: ClassVar[str] = "truncated Newton"

    def own_arrays(self, n_atoms: int) -> Mapping[str, int]:
        return {"directions": 3 * n_atoms, "solutions": 3 * n_atoms}

    @classmethod
    def preconditioner_of(cls, passes: AnyPasses) -> Preconditioner | None:
        return Preconditioner.of(passes)

    def init(self, state: NDArray[Any]) -> None:
        state[StepState.LENGTH] = FIRST_LENGTH

    def builds_of(self) -> list[Launch]:
        return []  # built at each trial

    def step(self, before: str, after: str) -> list[Launch]:
        bends, reaches = (self.queue.zeros(k * self.n_chunks, self.fine) for k in (4, 2))
        old, new, step = self.arrays[before], self.arrays[after], self.passes.encoding.step
        sizes = dict(n_atoms=self.n_atoms, chunk_size=self.shape.chunk, n_chunks=self.n_chunks)

        def launch(name: str, *names: str, **arguments: Any) -> Launch:
            given = {**sizes, **arguments, **self.named(*names)}
            return self.bind("minimize/newton.cl", name, (self.n_chunks, 1), given)

        results = self.passes.result_sizes
        curvature = launch(
            "measure_curvature", "free", "results", "base_gradient", "history", state=old, sums=bends, **results,
            **self.softened,
        )  # fmt: skip
        step_on = launch(
            "step_newton", "free", "results", "positions", "base", "base_gradient", "directions", "history",
            "solutions", sharing=self.sharing, descent=Descent.NEWTON, stopping=self.stopping, step=step,
            parts=self.sums, bends=bends, before=old, after=new, reaches=reaches, **results, **self.softened,
        )  # fmt: skip
        probe = launch("probe_newton", "positions", "history", "base", step=step, reaches=reaches, state=new)
        return [self.build("positions", before), self.measure(), curvature, step_on, probe]


METHOD = Newton
