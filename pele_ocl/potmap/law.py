"""Potential of a point charge by its distance, on the host; cl/potmap.clh has this law for the kernels."""

from __future__ import annotations

import numpy as np

from ..atoms import Floats
from ..potential_model import PotentialModel


def potential(r2: Floats, model: PotentialModel) -> Floats:
    """Potential of a unit charge in e/A at squared distances r2 [A^2] of any shape, the dielectric left out."""
    r = _clamped(r2, model)
    value = _screened(r, model)
    if model.cutoff is None:
        return value
    return np.where(r2 < model.cutoff**2, value * _switch(r, model), 0.0)


def slope(r2: Floats, model: PotentialModel) -> Floats:
    """-(d potential / dr) / r in e/A^3: times the vector from the charge to the point, the field of a unit charge."""
    r = _clamped(r2, model)
    value = _screened(r, model)
    power = 2 if model.distance_dependent else 1
    pull = value * (power + model.kappa * r) / r**2
    if model.cutoff is not None:
        pull = pull * _switch(r, model)
        if model.smooth:  # minus the derivative of the switch, over r
            pull = pull + value * 4 * np.maximum(1 - (r / model.cutoff) ** 2, 0) / model.cutoff**2
        pull = np.where(r2 < model.cutoff**2, pull, 0.0)
    found: Floats = np.where(r2 < model.min_distance**2, 0.0, pull)
    return found


def _clamped(r2: Floats, model: PotentialModel) -> Floats:
    """Distances, at least the minimum one."""
    r: Floats = np.maximum(np.sqrt(r2), model.min_distance)
    return r


def _screened(r: Floats, model: PotentialModel) -> Floats:
    """exp(-kappa r) / r, or / r^2 where the dielectric grows with the distance."""
    screening = np.exp(-model.kappa * r) if model.kappa else 1.0  # exponentials would take most of the time
    value: Floats = screening / (r * r if model.distance_dependent else r)
    return value


def _switch(r: Floats, model: PotentialModel) -> Floats | float:
    """Return the factor that takes a smooth potential to 0 at the cutoff; 1 for others."""
    if not model.smooth or model.cutoff is None:
        return 1.0
    factor: Floats = np.maximum(1 - (r / model.cutoff) ** 2, 0) ** 2
    return factor
