"""Parameters of a mesh for each accuracy."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class MeshPreset:
    """Parameters of the split and of the window; docs/theory/mesh.md.

    accuracy : the error by norm that it keeps around molecules
    c : bandwidth of the split, so that the mesh's spacing is pi cutoff / c
    nodes : P, of the mesh that a charge is spread onto along each axis; even
    width : bandwidth of the window over pi P / 2
    near_degree : of the near part's polynomial in the squared distance
    window_degree : of the window's polynomial between two nodes
    """

    accuracy: float
    c: float
    nodes: int
    width: float
    near_degree: int
    window_degree: int


PRESETS = (
    MeshPreset(1e-3, 8, 6, 1.2, 7, 8),
    MeshPreset(1e-4, 10, 8, 1.2, 8, 10),
    MeshPreset(1e-5, 13, 10, 1.2, 10, 12),
    MeshPreset(1e-6, 15, 10, 1.2, 11, 12),
    MeshPreset(1e-7, 17, 12, 1.1, 13, 14),
)
FINEST = PRESETS[-1].accuracy
FLOAT32_ACCURACY = 1e-6  # the best that float32 maps can have


def preset_for(accuracy: float) -> MeshPreset:
    """Return the cheapest preset that keeps an accuracy, which is at least FINEST."""
    return next(preset for preset in PRESETS if preset.accuracy <= accuracy * (1 + 1e-9))
