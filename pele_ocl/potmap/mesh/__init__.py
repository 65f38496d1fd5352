"""Maps with a cost linear in atoms plus points: near atoms directly, the others by a mesh (docs/theory/mesh.md)."""

from __future__ import annotations

from .far import FarMesh, FarPart, Nodes
from .parameters import (
    FINEST,
    FLOAT32_ACCURACY,
    NodeNeeds,
    levels,
    mesh_evaluations,
    mesh_for,
    mesh_needs,
    table_waves,
    tighter,
)

__all__ = [
    "FINEST", "FLOAT32_ACCURACY", "FarMesh", "FarPart", "NodeNeeds", "Nodes", "levels", "mesh_evaluations", "mesh_for",
    "mesh_needs", "table_waves", "tighter",
]  # fmt: skip
