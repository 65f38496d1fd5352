"""Names of the library's reading."""

from __future__ import annotations

from ..reading import Reading as StructureReader
from ..reading import selection_of as selection_of

__all__ = ["StructureReader", "selection_of"]
