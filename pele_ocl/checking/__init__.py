"""Check of kernels that others write: compiled, run on awkward sizes, simulated, timed; docs/check.md."""

from .check import check_kernel
from .findings import KINDS, CaseResult, Finding, KernelCheck, Rung
from .quantities import QUANTITIES

__all__ = ["KINDS", "QUANTITIES", "CaseResult", "Finding", "KernelCheck", "Rung", "check_kernel"]
