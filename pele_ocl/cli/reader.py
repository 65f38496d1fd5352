"""Names of the library's reading."""

from __future__ import annotations

from ..reading import Bools as Bools
from ..reading import Reading as StructureReader
from ..reading import selection_of as selection_of

__all__ = ["Bools", "StructureReader", "selection_of"]
