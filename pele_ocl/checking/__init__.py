"""Check of kernels that others write: compiled, run on awkward sizes, simulated, timed; docs/check.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..common.modules import lazy_names
from .check import check_kernel
from .findings import KINDS, CaseResult, CheckResult, Finding, LadderTime
from .quantities import QUANTITIES

__all__ = ["KINDS", "QUANTITIES", "CaseResult", "CheckResult", "Finding", "LadderTime", "check_kernel"]

if not TYPE_CHECKING:  # names for tests, by the file that has them
    __getattr__ = lazy_names(
        __name__,
        {
            "check": "in_this_process together",
            "compiling": "files_outside plain_source plain_words",
            "running": "Runner",
            "simulator": "findings_of lines_of_writes same_values",
            "timing": "LADDERS",
        },
    )
