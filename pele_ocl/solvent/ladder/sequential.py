"""Whole double loop in one work-item."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...common.variant import Progress
from .rung import Molecule, Rung

if TYPE_CHECKING:
    from ...opencl.queue import Queue

LAUNCH_PAIRS = 2e7  # in a launch, where progress is asked for


class Sequential(Rung):
    """Plain loop of PELE, compiled, on one CPU core: what all others are measured against."""

    def __init__(self, queue: Queue, molecule: Molecule) -> None:
        super().__init__(queue, molecule)
        m = molecule
        self.loop = queue.bind(
            "solvent/ladder/sequential.cl", "born_radii_sequential", (1, 1), (1, 1),
            dict(first_row=0, last_row=m.n, **m.constants, **m.terms, **m.radii_arguments), **m.macros,
        )  # fmt: skip

    def compute(self, queue: Queue, tell: Progress | None = None) -> None:
        n = self.molecule.n
        step = n if tell is None else max(1, int(LAUNCH_PAIRS / n))
        for first in range(0, n, step):
            last = min(first + step, n)
            self.compute_rows(queue, first, last)
            if tell is not None:
                queue.finish()
                tell(last / n)

    def compute_rows(self, queue: Queue, first: int, last: int) -> None:
        """Fill psi and born of the atoms from `first` to `last`: a sample is enough to time a large molecule."""
        self.loop.change(dict(first_row=first, last_row=last))
        queue.launch_bound([self.loop], 1)
