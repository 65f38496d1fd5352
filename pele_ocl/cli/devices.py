"""`pele-ocl devices`: list of OpenCL devices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ..common.errors import DeviceError
from ..report import text_table as table
from .command import EachOnce
from .options import debug_option
from .terminal import say

if TYPE_CHECKING:
    from ..opencl.device import Device


@click.command(cls=EachOnce)
@debug_option
def devices() -> None:
    """List the OpenCL devices that can be used; 0 is the default."""
    from ..opencl.device import get_device, install_hint, list_devices
    from ..opencl.runtimes import DEVICE_VARIABLE

    if not list_devices():
        raise DeviceError(f"no OpenCL device found; {install_hint()}")
    rows = [_row(device) for device in list_devices()]
    head = ("", "device", "type", "platform", "units", "memory", "vector", "fp64", "used for")
    say(table(head, rows, "><<<>>><<"))
    say(f"\nDefault: {get_device()}. Choose another with --device or {DEVICE_VARIABLE}, by number or part of a name.")


def _row(device: Device) -> tuple[str, ...]:
    widths = "/".join(str(device.vector_width(precision)) for precision in ("float32", "float64"))
    return (
        str(device.index),
        device.name,
        device.kind,
        device.version if device.vendor == "POCL" else f"{device.platform}, {device.version}",
        str(device.compute_units),
        f"{device.handle.global_mem_size / 2**30:.1f} GiB",
        widths,
        "yes" if device.has_float64 else "no",
        _use(device),
    )


def _use(device: Device) -> str:
    if device.kind == "simulator":
        return "finding races and invalid accesses"
    if device.kind == "CPU":
        return "all variants"
    return "all variants but sequential" + ("" if device.has_float64 else ", float32 only")
