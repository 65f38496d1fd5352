"""Kernels as readable single files, for `pele-ocl kernel`."""

from __future__ import annotations

from .listing import KERNELS, LadderKernel
from .plain import plain_kernel

__all__ = ["KERNELS", "LadderKernel", "plain_kernel"]
