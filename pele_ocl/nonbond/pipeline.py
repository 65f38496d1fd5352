"""Conformations, with their Born radii, through the passes of a pair list."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..atoms import Atoms, Floats
from ..common.variant import Progress
from ..plan.evaluator import Failures, Outputs
from ..plan.passes import Explain
from ..plan.pipeline import Chunk, Pipeline
from .passes import AnyPasses

if TYPE_CHECKING:
    from ..opencl.queue import Event


class ListPipeline(Pipeline):
    """Takes conformations, with their Born radii, through the passes of a pair list.

    prepare_seconds : kernels' time that it took to prepare the list
    """

    passes: AnyPasses

    def __init__(self, atoms: Atoms, passes: AnyPasses, explain: Explain, prepare_seconds: float) -> None:
        super().__init__(atoms, passes, explain)
        self.prepare_seconds = prepare_seconds
        self._radii: Floats | None = None  # (n,) that are on the device, for all conformations
        self._coming: Floats | None = None  # that are to be brought there
        self._writing: list[tuple[Event, NDArray[Any]]] = []  # kept until all is done

    def take_radii(self, born_radii: Floats | None) -> None:
        known = self._radii is not None and born_radii is not None and np.array_equal(self._radii, born_radii)
        self._coming = None if known else born_radii

    def finish(self, found: Outputs, failures: Failures) -> Mapping[str, float]:
        super().finish(found, failures)
        self._writing.clear()
        return {"prepare": self.prepare_seconds}

    def compute(
        self, conformations: Floats, found: Outputs, failures: Failures, *, profile: bool, tell: Progress
    ) -> Mapping[str, float]:
        seconds = super().compute(conformations, found, failures, profile=profile, tell=tell)
        self._writing.clear()
        return {"prepare": self.prepare_seconds, **seconds}

    def _start(
        self, chunk: Chunk, conformations: NDArray[Any], failures: Failures, tell: Progress | None = None
    ) -> None:
        self._bring_radii(chunk)
        super()._start(chunk, conformations, failures, tell)

    def _bring_radii(self, chunk: Chunk) -> None:
        """Have the device read the Born radii of a chunk, unless they are there."""
        coming = self._coming
        if coming is None:
            return
        self._radii = None
        rows = coming[chunk.part] if coming.ndim == 2 else np.broadcast_to(coming, (self.batch, len(coming)))
        roots = self.passes.task.molecule.traits.roots(rows)
        self._writing.append((chunk.queue.start_write(self.passes.buffer("roots"), roots), roots))
        if coming.ndim == 1:
            self._radii, self._coming = coming, None
