"""Built programs, their kernels, and the OpenCL kernel objects that launch them."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyopencl as cl

from . import handles
from .signature import Parameter, Signature, parameters_of


@dataclass(frozen=True)
class Program:
    """Kernels built for a device, with their signatures.

    signatures : by kernel; None if the runtime tells them, because the program was built from source
    """

    handle: cl.Program
    signatures: Mapping[str, tuple[Parameter, ...]] | None = None

    def signature(self, name: str) -> tuple[Parameter, ...]:
        """Give the parameters of a kernel."""
        return parameters_of(self.handle, name) if self.signatures is None else self.signatures[name]

    def all_signatures(self) -> dict[str, tuple[Parameter, ...]]:
        """Give the parameters of every kernel."""
        names: Any = self.handle.get_info(cl.program_info.KERNEL_NAMES)
        return {name: self.signature(name) for name in names.strip("\0").split(";") if name}


class Kernel:
    """A kernel of a built program, with the OpenCL kernel objects to launch it.

    An object carries the arguments set last, so each has one user at a time. Who launches borrows one, sets all
    arguments, enqueues, and gives it back. Objects are kept, because making one costs more than a launch. Threads may
    use a Kernel at the same time, and finalizers may give objects back.

    signature : what it takes; of one that serves rows, what it takes for a structure alone
    launched : if it has run on the device
    """

    def __init__(self, program: cl.Program, name: str, handle: cl.Device, signature: Signature) -> None:
        self.name, self.signature, self.launched = name, signature, False
        self._program, self._handle = program, handle
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
        return int(own) if own and handles.vendor(self._handle) == "NVIDIA" else max(1, int(limit))
