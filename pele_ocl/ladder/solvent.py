"""Ladder of the thesis for Born radii, from a plain loop on one CPU core to parallel kernels.

Read sequential, inner, outer and `pair` (pele_ocl/solvent/pair.py) in this order. Each computes the radii of one
conformation, which the engine's energy passes then use.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ..common.variant import Progress
from ..solvent import VARIANTS, Solvent
from ..solvent.pair import Molecule, PlainPasses, PlainRadii
from ..solvent.passes import ITEMS, SolventPasses
from .rung import Rung

if TYPE_CHECKING:
    from ..opencl.binding import BoundLaunch
    from ..opencl.memory import Buffer
    from ..opencl.queue import Queue

LAUNCH_PAIRS = 2e7  # pairs per launch of `sequential` if progress is reported
TOLD = 64  # atoms of `inner` between progress reports


class Sequential(PlainRadii):
    """PELE's plain loop, compiled, on one CPU core; the reference for speedups."""

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
        """Compute psi and born of the atoms from `first` to `last`; a sample is enough to time a large molecule."""
        self.loop.change(dict(first_row=first, last_row=last))
        queue.launch_bound([self.loop], 1)


class Inner(PlainRadii):
    """One work-item per atom j; the host loops over the atoms i and sums."""

    def __init__(self, queue: Queue, molecule: Molecule) -> None:
        super().__init__(queue, molecule)
        m = molecule
        self.config, self.contributions = queue.empty(2, np.int32), queue.empty(m.n)
        self.sums = queue.empty(m.n)
        self.row = queue.bind(
            "solvent/ladder/inner.cl", "hct_row", (m.n, 1), (ITEMS, 1),
            dict(config=self.config, contributions=self.contributions, **m.terms), **m.macros,
        )  # fmt: skip
        self.radii = radii_step(queue, m, self.sums)

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


def radii_step(queue: Queue, molecule: Molecule, sums: Buffer, n_parts: int = 1) -> BoundLaunch:
    """Bind the launch that computes psi and Born radii from partial Born integrals (n_parts, n)."""
    m = molecule
    return queue.bind(
        "solvent/ladder/radii.cl", "born_radii", (m.n, 1), (ITEMS, 1),
        dict(n_parts=n_parts, sums=sums, rho=m.rho, **m.constants, **m.radii_arguments), **m.macros,
    )  # fmt: skip


class Outer(PlainRadii):
    """One work-item per atom."""

    def __init__(self, queue: Queue, molecule: Molecule) -> None:
        super().__init__(queue, molecule)
        m = molecule
        self.launches = [
            queue.bind(
                "solvent/ladder/outer.cl", "born_radii_outer", (m.n, 1), (queue.device.largest_group, 1),
                dict(**m.constants, **m.terms, **m.radii_arguments), cost=m.pairs, **m.macros,
            )
        ]  # fmt: skip


SOLVENT: dict[str, Rung[Callable[..., SolventPasses]]] = {
    "sequential": Rung(
        "solvent/ladder/sequential.cl", "born_radii_sequential", "the compiled double loop, on one CPU core",
        partial(PlainPasses, Sequential), cpu_only=True, sums=1,
    ),
    "inner": Rung(
        "solvent/ladder/inner.cl", "hct_row", "host loop over atoms i, one work-item per j",
        partial(PlainPasses, Inner),
    ),
    "outer": Rung(
        "solvent/ladder/outer.cl", "born_radii_outer", "one work-item per atom", partial(PlainPasses, Outer), sums=1,
    ),
    **{name: Rung.of(variant) for name, variant in VARIANTS.items()},
}  # fmt: skip


class SolventLadder(Solvent):
    """Solvent with any rung of the ladder, including the engine's variants."""

    variants = SOLVENT
    _elsewhere = ""
