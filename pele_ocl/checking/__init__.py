"""Checks of user-written kernels, which are compiled, run on difficult sizes, simulated and timed; docs/check.md."""

from __future__ import annotations

from .check import check_kernel
from .findings import KINDS, CaseResult, CheckResult, Finding, LadderTime
from .quantities import QUANTITIES

__all__ = ["KINDS", "QUANTITIES", "CaseResult", "CheckResult", "Finding", "LadderTime", "check_kernel"]
