"""Outputs are never inputs: one check for every command."""

from __future__ import annotations

from ..common.writing import same_file
from ..jobs.outputs import refuse_overwriting

__all__ = ["refuse_overwriting", "same_file"]
