"""OpenCL, which nothing else touches: runtimes, devices, kernels, timing.

Its names are loaded when they are first used, for that loads the OpenCL runtimes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..common.modules import lazy_names

if TYPE_CHECKING:
    from .device import Device, get_cpu_device, get_device
    from .queue import Queue

__all__ = ["Device", "Queue", "get_cpu_device", "get_device"]

if not TYPE_CHECKING:  # names by the file that has them; others than in __all__ are for tests
    __getattr__ = lazy_names(
        __name__,
        {
            "device": "Device get_cpu_device get_device",
            "queue": "Queue",
        },
    )
