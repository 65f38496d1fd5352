"""Kernels as files of their own, for people to read; `pele-ocl kernel`."""

from .listing import KERNELS, Listed
from .plain import plain_kernel

__all__ = ["KERNELS", "Listed", "plain_kernel"]
