"""Structures that live on a device between calls, a row each: the state of samplers, minimizers and dynamics."""

from __future__ import annotations

from .columns import Column, DeviceArray
from .drivers import DriverKernel
from .ensemble import Ensemble

__all__ = ["Column", "DeviceArray", "DriverKernel", "Ensemble"]
