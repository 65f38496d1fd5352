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
            "building": "GroupTooLargeError get_kernel is_about_the_group",
            "cache": "CHECKSUM_BYTES CachedProgram",
            "device": "Device get_cpu_device get_device install_hint",
            "interface": "BondedKind HEADERS MOMENTS ONE_FOUR PAIR_MODEL REACHES Role StepState Stop",
            "kernel": "Kernel Program",
            "launch": "BoundLaunch",
            "preprocessing": "Preprocessor",
            "queue": "Queue",
            "recording": "RecordingQueue",
            "signature": "Parameter Signature declared_parameters",
            "staging": "IN_TURN read_without_padding",
        },
    )
