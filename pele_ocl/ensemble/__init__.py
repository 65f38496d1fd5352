"""Structures that stay on a device between calls, one row each; used by samplers, minimizers and dynamics."""

from __future__ import annotations

from .columns import Column, DeviceArray
from .drivers import DriverKernel
from .ensemble import Ensemble

__all__ = ["Column", "DeviceArray", "DriverKernel", "Ensemble"]
