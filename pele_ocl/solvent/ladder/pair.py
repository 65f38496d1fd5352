"""Both loops on the device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .rung import Molecule, Rung

if TYPE_CHECKING:
    from ...opencl.queue import Queue


GROUP = 256  # as in the thesis


class Pair(Rung):
    """A work-group for each atom, whose work-items share the others."""

    def __init__(self, queue: Queue, molecule: Molecule) -> None:
        super().__init__(queue, molecule)
        m, file, kernel = molecule, "solvent/ladder/pair.cl", "born_sums_pair"
        _, group = queue.group_kernel(file, kernel, local_reals=1, most=queue.device.ladder_group or GROUP, **m.macros)
        self.launches = [
            queue.bind(
                file, kernel, (m.n * group, 1), (group, 1), dict(**m.constants, **m.terms, **m.radii_arguments),
                cost=m.pairs, GROUP=group, **m.macros,
            )
        ]  # fmt: skip
