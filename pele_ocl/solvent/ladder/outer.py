"""The outer loop on the device."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .rung import Molecule, Rung

if TYPE_CHECKING:
    from ...opencl.run import Run


class Outer(Rung):
    """A work-item for each atom."""

    def __init__(self, run: Run, molecule: Molecule) -> None:
        super().__init__(run, molecule)
        m = molecule
        self.launches = [
            run.keep(
                "solvent/ladder/outer.cl", "born_radii_outer", (m.n, 1), (run.device.largest_group, 1), np.int32(m.n),
                m.constants, *m.terms, m.radii, m.psi, m.born, pairs=m.pairs, **m.macros,
            )
        ]  # fmt: skip
