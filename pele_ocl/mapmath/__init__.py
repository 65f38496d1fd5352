"""Add, subtract and scale maps, convert their formats and units, and interpolate them at points."""

from __future__ import annotations

from ..common.modules import make_callable
from .combining import SAME, combine_maps, is_same
from .files import MapResult, Samples, convert, mapmath, sample_map, with_unit

__all__ = [
    "SAME", "MapResult", "Samples", "combine_maps", "convert", "is_same", "mapmath", "sample_map", "with_unit",
]  # fmt: skip

make_callable(__name__)
