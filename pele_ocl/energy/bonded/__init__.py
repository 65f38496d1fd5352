"""Bonded terms and 1-4 pairs: what a device computes of a molecule's tables, in groups of neighbouring atoms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...common.modules import lazy_names
from .kernels import TABLES_OF_TERMS, BondedTerms, bonded_names

__all__ = ["TABLES_OF_TERMS", "BondedTerms", "bonded_names"]

if not TYPE_CHECKING:  # names for tests, by the file that has them
    __getattr__ = lazy_names(
        __name__,
        {
            "tasks": "Tasks stable_order",
        },
    )
