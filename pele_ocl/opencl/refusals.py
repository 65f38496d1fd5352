"""OpenCL's errors as sentences about the device."""

from __future__ import annotations

from types import TracebackType

import pyopencl as cl

from ..common.errors import DeviceError, DeviceMemoryError
from .device import Device


def refusal(device: Device, error: cl.Error) -> DeviceError:
    """Say an error of OpenCL's as a sentence about the device."""
    if isinstance(error, cl.MemoryError):
        return DeviceMemoryError(f"{device} lacks free memory for this; choose another device")
    return DeviceError(f"{device} refuses the work ({error}); choose another device or variant")


class device_errors:  # noqa: N801  # used as a function; a generator would cost more than setting an argument
    """Raise whatever OpenCL refuses within the block as DeviceError.

    `try` and `refusal` do the same without calls of their own, for the shortest ways.
    """

    def __init__(self, device: Device) -> None:
        self._device = device

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        if isinstance(error, cl.Error):
            raise refusal(self._device, error) from error


def is_of_a_run(error: DeviceError) -> bool:
    """Tell if a device failed while it ran a kernel, and did not refuse to begin; NVIDIA's then lose their queue."""
    reason = error.__cause__
    if not isinstance(reason, cl.Error):
        return False
    return reason.routine in ("clFinish", "clWaitForEvents") or reason.code == cl.status_code.INVALID_COMMAND_QUEUE
