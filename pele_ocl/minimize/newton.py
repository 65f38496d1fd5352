"""Truncated Newton: directions by conjugate gradients, which take the curvature from differences of gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ..energy.passes import AnyPasses
from .steps import Steps

if TYPE_CHECKING:
    from ..opencl.launch import Argument, KeptLaunch


class NewtonSteps(Steps):
    """As Steps, by truncated Newton; cl/minimize/newton.cl. An iteration is an evaluation, of a step or along p."""

    pairs: ClassVar[int] = 1  # of vectors: the preconditioned residual and the direction of the conjugate gradients

    def _more(self, size: int, real: np.dtype[np.generic]) -> list[tuple[str, int, np.dtype[np.generic]]]:
        return [("solutions", size, real)]

    def _builds_of(self, passes: AnyPasses) -> list[KeptLaunch]:
        return []  # built at each trial

    def _may_join(self, passes: AnyPasses) -> bool:
        return False

    def _launches(self, passes: AnyPasses, before: str, after: str) -> list[KeptLaunch]:
        run, kept, shape, n = passes.run, self.kept, self._shape, passes.n_atoms
        n_chunks = self._n_chunks
        bends = run.zeros(4 * passes.batch * n_chunks, self.fine)
        reaches = run.zeros(2 * passes.batch * n_chunks, self.fine)
        positions, results = passes.named("positions", "results")
        base, gradient, directions, history, solutions = (
            kept[name][0] for name in ("base", "gradient", "directions", "history", "solutions")
        )  # fmt: skip
        step, macros = run.dtype.type(passes.encoding.step), self._macros(passes)

        def launch(name: str, *args: Argument) -> KeptLaunch:
            return run.keep(
                "minimize/newton.cl", name, (n_chunks * shape.items, 1), (shape.items, 1), np.int32(n),
                np.int32(passes.n_energies), np.int32(shape.chunk), *args, **macros,
            )  # fmt: skip

        return [
            *self.evaluation, self._build(passes, "positions", before), self._measure(passes),
            launch(
                "measure_curvature", kept[before][0], gradient, history, *self._preconditioned, self.free, results,
                bends,
            ),
            launch(
                "step_newton", np.int32(self._sharing), np.int32(self._descent), self._stopping, step, self.free,
                *self._preconditioned, results, self._sums, bends, kept[before][0], kept[after][0], positions, base,
                gradient, directions, history, solutions, reaches,
            ),
            launch("probe_newton", step, reaches, history, base, positions, kept[after][0]),
        ]  # fmt: skip
