"""OpenCL's errors as sentences about the device."""

from __future__ import annotations

from types import TracebackType

import pyopencl as cl

from ..errors import DeviceError, DeviceMemoryError
from .device import Device


class device_errors:  # noqa: N801  # used as a function; a generator would cost more than setting an argument
    """Within the block, whatever OpenCL refuses is raised as DeviceError, a sentence about the device."""

    def __init__(self, device: Device) -> None:
        self._device = device

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        if error is None:
            return
        if isinstance(error, cl.MemoryError):
            raise DeviceMemoryError(f"{self._device} lacks free memory for this; choose another device") from error
        if isinstance(error, cl.Error):
            raise DeviceError(f"{self._device} refuses the work ({error}); choose another device or variant") from error
