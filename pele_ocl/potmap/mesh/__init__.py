"""Maps whose cost grows as atoms plus points: a near part summed up, a far part from a mesh (docs/theory/mesh.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...common.modules import lazy_names
from .far import FarMesh, FarPart, Nodes
from .memory import mesh_reals
from .parameters import levels, mesh_evaluations, mesh_for, table_waves, tighter
from .presets import FINEST, FLOAT32_ACCURACY

__all__ = [
    "FINEST", "FLOAT32_ACCURACY", "FarMesh", "FarPart", "Nodes", "levels", "mesh_evaluations", "mesh_for", "mesh_reals",
    "table_waves", "tighter",
]  # fmt: skip

if not TYPE_CHECKING:  # names for tests, by the file that has them
    __getattr__ = lazy_names(
        __name__,
        {
            "convolution": "Convolution",
            "fft": "FFT_ENGINE FFT_VARIANTS",
            "geometry": "MeshGeometry transform_length",
            "parameters": "Levels far_box sheets_of",
            "presets": "PRESETS",
            "scratch": "Scratch",
            "sheet_geometry": "SheetGeometry",
            "split": "Middle Split",
            "transform": "radices roots",
            "window": "Window",
        },
    )
