"""Atoms sorted into tiles, their tables on a device, and the series of the HCT integral."""

from __future__ import annotations

from .tiles import Tiles, cpu_parts, tried_parts

__all__ = ["Tiles", "cpu_parts", "tried_parts"]
