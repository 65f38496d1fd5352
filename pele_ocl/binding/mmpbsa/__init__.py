"""Run input files of MMPBSA.py and gmx_MMPBSA, and write results in their formats."""

from __future__ import annotations

from .result import MmpbsaResult
from .runs import mmpbsa

__all__ = ["MmpbsaResult", "mmpbsa"]
