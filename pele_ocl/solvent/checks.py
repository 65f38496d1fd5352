"""What Born radii ask of a molecule."""

from __future__ import annotations

import numpy as np

from ..atoms import Atoms, Floats
from ..errors import InputError, ParameterError
from ..solvent_model import SolventModel

LARGEST_SPAN = 500_000.0  # A; beyond, tiles' origins would not be exact in float32


def check_radii(atoms: Atoms, model: SolventModel) -> None:
    """Raise ParameterError for a GB radius at or below the offset, which leaves no atom."""
    assert atoms.gb_radii is not None
    small = atoms.gb_radii <= model.offset
    if small.any():
        i = int(np.argmax(small))
        raise ParameterError(
            f"the GB radius of {atoms.describe(i)} is {atoms.gb_radii[i]:g} A, at or below the offset of "
            f"{model.offset:g} A; give it a larger radius"
        )


def check_span(positions: Floats) -> None:
    """Raise InputError where positions (..., 3) A reach farther than a molecule does."""
    columns = np.ascontiguousarray(positions.reshape(-1, 3).T)  # ten times faster to look through
    span = float(np.ptp(columns, axis=1).max())
    if span > LARGEST_SPAN:
        raise InputError(f"the atoms span {span:.3g} A; a molecule up to {LARGEST_SPAN:,.0f} A can be computed")
