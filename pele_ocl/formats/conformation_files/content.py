"""The content of a file of conformations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from ...atoms import Atoms, Floats, Labels
from ...errors import FormatError


@dataclass(frozen=True)
class Content:
    """A molecule of which conformations are written.

    atoms : with labels; n : conformations; source : of the atoms, for messages
    b_factors : (n_atoms, 2) occupancies and B-factors, which PDB and mmCIF files keep
    precision : "float32" or "float64" of positions in HDF5 files
    attributes : of HDF5 files
    """

    atoms: Atoms
    n: int = 1
    source: str = "the molecule"
    b_factors: Floats | None = None
    precision: str = "float32"
    attributes: Mapping[str, object] = field(default_factory=dict)

    @property
    def labels(self) -> Labels:
        """The names. Raises FormatError where there are none."""
        if self.atoms.labels is None:
            raise FormatError(f"{self.source}: its atoms have no names, which PDB and mmCIF files need; write .nc")
        return self.atoms.labels

    @property
    def known_b_factors(self) -> Floats:
        """The occupancies and B-factors, 1 and 0 where they are not known."""
        return np.tile([1.0, 0.0], (len(self.atoms), 1)) if self.b_factors is None else self.b_factors
