"""Checks of GB radii and of Born radii."""

from __future__ import annotations

import numpy as np

from ..atoms import Atoms, Floats
from ..common.errors import InputError, ParameterError
from ..gb_models.solvent_model import SolventModel


def check_radii(atoms: Atoms, model: SolventModel) -> None:
    """Raise ParameterError or InputError for atoms without what the model needs, such as radii above the offset."""
    if model.gb_model.vacuum:
        return
    if "gb_radii" not in model.gb_model.parameters:
        model.spheres(atoms)
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


def born_radius_error(atoms: Atoms, i: int, born_radii: Floats, model: SolventModel) -> InputError:
    """Make the error of an atom whose Born radius (n,) A is negative or not finite.

    It names the atom whose sphere covers that one most, too, as its scale or place may be the cause.
    """
    r = np.linalg.norm(atoms.positions - atoms.positions[i], axis=1)
    r[i] = np.inf
    spheres = model.spheres(atoms)
    other = int(np.argmax(spheres.scaled / r))
    if len(atoms) < 2 or spheres.scaled[other] <= 0:
        return InputError(
            f"the Born radius of {atoms.describe(i)} comes out as {born_radii[i]}; check its radius and scale"
        )
    return InputError(
        f"the Born radius of {atoms.describe(i)} comes out as {born_radii[i]:g} A; check its radius and scale, and "
        f"those of {atoms.describe(other)}, whose scaled sphere of {spheres.scaled[other]:.3g} A covers it most, "
        f"{r[other]:.3g} A away"
    )
