"""Warnings about time steps too long for the vibrations of a molecule."""

from __future__ import annotations

import numpy as np

from ..atoms import Atoms, Floats, Ints
from ..atoms.radii import elements_of
from ..units import KCAL_DA_A2_PER_PS2
from .bodies import Body

LONGEST_STEP = 1.0  # fs, for unconstrained bonds to hydrogen with normal masses
SHORTEST_STEP = 0.1  # fs; a shorter step was probably meant in ps
LONGEST_HELD_STEP = 3.0  # fs, for angles of hydrogens with constrained bonds and normal masses
# Largest product of time step and angular frequency of a bond. Leapfrog integration is unstable from 2.
MOST_PHASE = 1.5


def step_note(atoms: Atoms, body: Body, timestep: float) -> str:
    """Return a warning about a time step, in fs, that is too long for vibrations or very short, or ""."""
    if timestep < SHORTEST_STEP:
        return f"steps of {timestep:g} fs are very short; `timestep` is in fs"
    assert atoms.labels is not None  # ensured by masses_of
    is_hydrogen = body.free & (elements_of(atoms.labels) == "H")
    if is_hydrogen.any():
        slower = float(np.sqrt((body.masses / atoms.masses)[is_hydrogen]).min())
        if body.constraints is None and timestep > LONGEST_STEP * slower:
            return (
                f"bonds to hydrogen vibrate too fast for steps of {timestep:g} fs; constrain them with "
                "`constraints='hbonds'`"
            )
        if body.constraints is not None and timestep > LONGEST_HELD_STEP * slower:
            return f"angles of hydrogens vibrate too fast for steps of {timestep:g} fs; use `hydrogen_mass=3`"
    pairs, frequencies = _free_bonds(atoms, body)
    phases = frequencies * 1e-3 * timestep
    if phases.max(initial=0.0) <= MOST_PHASE:
        return ""
    i, j = pairs[np.argmax(phases)].tolist()
    masses = f"{body.masses[i]:.2f} and {body.masses[j]:.2f} Da"
    return (
        f"the bond of {atoms.describe(i)} and {atoms.describe(j)}, of {masses}, vibrates too fast for steps of "
        f"{timestep:g} fs; use shorter steps or a smaller hydrogen_mass"
    )


def _free_bonds(atoms: Atoms, body: Body) -> tuple[Ints, Floats]:
    """Return the unconstrained harmonic bonds, (m, 2), and their angular frequencies, (m,) 1/ps."""
    if atoms.bonded is None:
        return np.zeros((0, 2), np.int32), np.zeros(0)
    bonds, inverse_masses = atoms.bonded.bonds, body.inverse_masses
    held = np.zeros(len(atoms), bool)
    if body.constraints is not None:
        held[body.constraints.hydrogens] = True
    is_free = ~held[bonds.atoms].any(axis=1)
    pairs = bonds.atoms[is_free]
    return pairs, np.sqrt(2 * KCAL_DA_A2_PER_PS2 * bonds.parameters[is_free, 0] * inverse_masses[pairs].sum(axis=1))
