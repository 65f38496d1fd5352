"""Work-group sizes in the kernels of the thesis, to repeat its experiments with 64, 128 and 256 work-items."""

from __future__ import annotations

from dataclasses import replace

from ..common.errors import InputError
from ..opencl.device import Device


def with_groups(device: Device, size: int | None) -> Device:
    """Return a device that uses this work-group size for the kernels of the thesis; None for the size in the thesis.

    Raises InputError for a size that is not a power of two, or that the device does not support.
    """
    most = device.largest_group
    if size is not None and (size & (size - 1) or size > most):
        raise InputError(f"groups cannot have {size:,} work-items here; choose a power of two up to {most:,}")
    return replace(device, ladder_group=size)
