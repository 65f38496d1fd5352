"""Outer loop on the device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .rung import Molecule, Rung

if TYPE_CHECKING:
    from ...opencl.queue import Queue


class Outer(Rung):
    """A work-item for each atom."""

    def __init__(self, queue: Queue, molecule: Molecule) -> None:
        super().__init__(queue, molecule)
        m = molecule
        self.launches = [
            queue.bind(
                "solvent/ladder/outer.cl", "born_radii_outer", (m.n, 1), (queue.device.largest_group, 1),
                dict(**m.constants, **m.terms, **m.radii_arguments), cost=m.pairs, **m.macros,
            )
        ]  # fmt: skip
