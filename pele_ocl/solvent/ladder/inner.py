"""Inner loop on the device: a launch and a read-back for each atom."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...common.variant import Progress
from .rung import ITEMS, Molecule, Rung

if TYPE_CHECKING:
    from ...opencl.queue import Queue

TOLD = 64  # atoms between two reports of progress


class Inner(Rung):
    """A work-item for each atom j; the host walks the atoms i and adds up."""

    def __init__(self, queue: Queue, molecule: Molecule) -> None:
        super().__init__(queue, molecule)
        m = molecule
        self.config, self.contributions = queue.empty(2, np.int32), queue.empty(m.n)
        self.sums = queue.empty(m.n)
        self.row = queue.bind(
            "solvent/ladder/inner.cl", "hct_row", (m.n, 1), (ITEMS, 1),
            dict(config=self.config, contributions=self.contributions, **m.terms), **m.macros,
        )  # fmt: skip
        self.radii = m.radii_step(queue, self.sums)

    def compute(self, queue: Queue, tell: Progress | None = None) -> None:
        n = self.molecule.n
        row, integrals = np.empty(n, queue.dtype), np.empty(n, queue.dtype)
        for i in range(n):
            queue.write(self.config, np.array([n, i], np.int32))
            queue.launch_bound([self.row], 1)
            queue.read(row, self.contributions)
            row[i] = 0
            integrals[i] = row.sum()
            if tell is not None and i % TOLD == 0:
                tell(i / n)
        queue.write(self.sums, integrals)
        queue.launch_bound([self.radii], 1)
