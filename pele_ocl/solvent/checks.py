"""Checks of GB radii and of Born radii."""

from __future__ import annotations

import numpy as np

from ..atoms import Atoms, Floats
from ..errors import InputError, ParameterError
from ..solvent_model import SolventModel


def check_radii(atoms: Atoms, model: SolventModel) -> None:
    """Raise ParameterError or InputError for atoms without what the model needs, such as radii above the offset."""
    if model.gb_model.vacuum:
        return
    assert atoms.gb_radii is not None
    small = atoms.gb_radii <= model.offset
    if small.any():
        i = int(np.argmax(small))
        raise ParameterError(
            f"the GB radius of {atoms.describe(i)} is {atoms.gb_radii[i]:g} A, at or below the offset of "
            f"{model.offset:g} A; give it a larger radius"
        )
    model.spheres(atoms)


def born_radius_error(atoms: Atoms, i: int, born_radii: Floats) -> InputError:
    """The error of an atom whose Born radius (n,) A is negative or not finite."""
    return InputError(
        f"the Born radius of {atoms.describe(i)} comes out as {born_radii[i]}; check its radius and scale"
    )
