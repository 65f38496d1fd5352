"""OpenCL runtimes, devices, kernels and timing. No other package calls OpenCL directly.

Names are imported on first use, because importing them loads the OpenCL runtimes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..common.modules import lazy_names

if TYPE_CHECKING:
    from .device import Device, get_cpu_device, get_device
    from .queue import Queue

__all__ = ["Device", "Queue", "get_cpu_device", "get_device"]

if not TYPE_CHECKING:  # modules and their names
    __getattr__ = lazy_names(
        __name__,
        {
            "device": "Device get_cpu_device get_device",
            "queue": "Queue",
        },
    )
