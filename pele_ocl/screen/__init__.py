"""Screening: refine and score many ligands in one receptor, and rank them."""

from __future__ import annotations

from ..common.modules import make_callable
from .result import ScreenResult
from .screener import Scored, Screener
from .screening import screen

__all__ = ["Scored", "ScreenResult", "Screener", "screen"]

make_callable(__name__)
