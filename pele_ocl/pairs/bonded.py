"""Pairs of atoms by their distance along bonds, as `atoms` finds them: a force field needs them, too."""

from __future__ import annotations

from ..atoms import exclusions

__all__ = ["exclusions"]
