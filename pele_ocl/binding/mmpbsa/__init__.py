"""Runs of MMPBSA.py and gmx_MMPBSA by their own input files, with results in their layouts."""

from __future__ import annotations

from .result import MmpbsaResult
from .runs import mmpbsa

__all__ = ["MmpbsaResult", "mmpbsa"]
