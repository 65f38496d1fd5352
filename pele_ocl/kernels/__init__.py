"""Kernels as files of their own, for people to read; `pele-ocl kernel`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..common.modules import lazy_names
from .listing import KERNELS, LadderKernel
from .plain import plain_kernel

__all__ = ["KERNELS", "LadderKernel", "plain_kernel"]

if not TYPE_CHECKING:  # names for tests, by the file that has them
    __getattr__ = lazy_names(
        __name__,
        {
            "declarations": "needed",
            "folding": "folded",
            "listing": "Build",
        },
    )
