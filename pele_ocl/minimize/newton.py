"""Truncated Newton: directions by conjugate gradients, which take the curvature from differences of gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ..energy.passes import AnyPasses
from .iteration import Iteration

if TYPE_CHECKING:
    from ..opencl.launch import BoundLaunch
    from ..opencl.signature import Arguments


class NewtonIteration(Iteration):
    """Iteration by truncated Newton; cl/minimize/newton.cl. It is an evaluation, of a step or along p."""

    history: ClassVar[int] = 1  # of vectors: the preconditioned residual and the direction of the conjugate gradients

    def _more(self, size: int, real: np.dtype[np.generic]) -> list[tuple[str, int, np.dtype[np.generic]]]:
        return [("solutions", size, real)]

    def _builds_of(self, passes: AnyPasses) -> list[BoundLaunch]:
        return []  # built at each trial

    def _may_join(self, passes: AnyPasses) -> bool:
        return False

    def _launches(self, passes: AnyPasses, before: str, after: str) -> list[BoundLaunch]:
        queue, shape, n_chunks = self._queue, self._shape, self._n_chunks
        bends = queue.zeros(4 * n_chunks, self.fine)
        reaches = queue.zeros(2 * n_chunks, self.fine)
        step, old, new = passes.encoding.step, self.per_row[before], self.per_row[after]
        sizes = dict(n_atoms=passes.n_atoms, chunk_size=shape.chunk, n_chunks=n_chunks)
        macros = self._macros(passes)

        def launch(name: str, arguments: Arguments) -> BoundLaunch:
            return queue.bind(
                "minimize/newton.cl", name, (n_chunks * shape.items, 1), (shape.items, 1), {**sizes, **arguments},
                **macros,
            )  # fmt: skip

        curvature = dict(
            state=old, free=self.free, sums=bends, **passes.result_sizes, **self._softened, **passes.named("results"),
            **self._named("base_gradient", "history"),
        )  # fmt: skip
        stepped = dict(
            sharing=self._sharing, descent=self._descent, stopping=self._stopping, step=step, free=self.free,
            parts=self._sums, bends=bends, before=old, after=new, reaches=reaches, **self._softened,
            **passes.result_sizes, **passes.named("results", "positions"),
            **self._named("base", "base_gradient", "directions", "history", "solutions"),
        )  # fmt: skip
        probe = dict(
            step=step, reaches=reaches, state=new, **passes.named("positions"), **self._named("history", "base"),
        )  # fmt: skip
        return [
            *self.evaluation, self._build(passes, "positions", before), self._measure(passes),
            launch("measure_curvature", curvature), launch("step_newton", stepped), launch("probe_newton", probe),
        ]  # fmt: skip
