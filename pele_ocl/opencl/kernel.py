"""Kernels of built programs, and the OpenCL kernel objects that launch them."""

from __future__ import annotations

import weakref
from collections import deque
from functools import cached_property

import pyopencl as cl

from .building import BUILDING, get_program
from .device import Device
from .refusals import device_errors
from .signature import Signature, types_of


class Kernel:
    """A kernel of a built program, with the OpenCL kernel objects to launch it.

    An object carries the arguments set last, so each has one user at a time. Who launches borrows one, sets all
    arguments, enqueues, and gives it back. Objects are kept, because making one costs more than a launch. Threads may
    use a Kernel at the same time, and finalizers may give objects back.

    signature : what it takes; of a packed kernel, what the plain one takes
    launched : if it has run on the device
    """

    def __init__(self, program: cl.Program, name: str, device: Device, signature: Signature) -> None:
        self.name, self.signature, self.launched = name, signature, False
        self._program, self._vendor, self._handle = program, device.vendor, device.handle
        self._free = deque([cl.Kernel(program, name)])

    def borrow(self) -> cl.Kernel:
        """A kernel object that nobody else uses."""
        try:
            return self._free.pop()
        except IndexError:
            return cl.Kernel(self._program, self.name)

    def give_back(self, kernel_object: cl.Kernel) -> None:
        """Let others have a borrowed kernel object."""
        self._free.append(kernel_object)

    def lend(self, owner: object) -> cl.Kernel:
        """A kernel object that comes back when `owner` is gone."""
        kernel_object = self.borrow()
        weakref.finalize(owner, self.give_back, kernel_object).atexit = False
        return kernel_object

    @cached_property
    def most_items(self) -> int:
        """Work-items that a group of this kernel may have on the device."""
        info, kernel_object = cl.kernel_work_group_info, self.borrow()
        own = kernel_object.get_work_group_info(info.COMPILE_WORK_GROUP_SIZE, self._handle)[0]
        limit = kernel_object.get_work_group_info(info.WORK_GROUP_SIZE, self._handle)
        self.give_back(kernel_object)
        # On NVIDIA the source's own size holds; the limit is 256 there, whatever that is.
        return int(own) if own and self._vendor == "NVIDIA" else max(1, int(limit))


def get_kernel(
    device: Device, file: str, name: str, precision: str, width: int = 1, portable: bool = False, packed: bool = False,
    **defines: int,
) -> Kernel:  # fmt: skip
    """Kernel `name` of cl/`file`, built for the device and kept.

    precision : "float32" or "float64"
    width : reals in a vector
    portable : leave out what is written for one vendor's compiler
    packed : whether it takes its arguments from a table, as pele_ocl/opencl/packing.py has it
    defines : further macros of the kernel

    Raises KernelBuildError with the compiler's words.
    """
    key = (file, name, precision, width, portable, packed, tuple(sorted(defines.items())))
    kernel: Kernel | None = device.kernels.get(key)
    if kernel is None:
        with BUILDING:
            program = get_program(device, file, precision, width, portable, defines, name if packed else None)
            types = types_of(precision, defines.get("FIXED_BITS", 0), defines.get("DOUBLES", 0))
            with device_errors(device):
                signature = Signature(name, program.signature(name), types)
                kernel = device.kernels.setdefault(key, Kernel(program.handle, name, device, signature))
    return kernel
