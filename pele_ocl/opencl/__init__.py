"""OpenCL, which nothing else touches: runtimes, devices, kernels, timing.

Its names are loaded when they are first used, for that loads the OpenCL runtimes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .device import Device, get_cpu_device, get_device
    from .queue import Queue

__all__ = ["Device", "Queue", "get_cpu_device", "get_device"]


def __getattr__(name: str) -> Any:
    """Load a name of the room."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import device, queue

    return getattr(queue if name == "Queue" else device, name)
