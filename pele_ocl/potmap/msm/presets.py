"""Parameters of multilevel summation for each accuracy."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class MsmPreset:
    """docs/theory/msm.md, section 4.

    accuracy : the error by norm that it keeps around molecules
    nodes : P of the interpolant; order : of the splitting
    ratio : of the cutoff to the spacing of the finest lattice
    """

    accuracy: float
    nodes: int
    order: int
    ratio: float


PRESETS = (
    MsmPreset(1e-2, 4, 2, 3.5),
    MsmPreset(1e-3, 6, 3, 5.0),
    MsmPreset(1e-4, 10, 5, 6.0),
    MsmPreset(1e-5, 10, 5, 9.0),
)
FINEST = PRESETS[-1].accuracy


def preset_for(accuracy: float) -> MsmPreset:
    """Return the cheapest preset that keeps an accuracy, which is at least FINEST."""
    return next(preset for preset in PRESETS if preset.accuracy <= accuracy * (1 + 1e-9))
