"""Launches whose arguments are set once."""

from __future__ import annotations

import pyopencl as cl

from .device import Device
from .kernel import Kernel
from .refusals import device_errors
from .signature import Argument, Arguments


def set_arguments(device: Device, kernel_object: cl.Kernel, args: tuple[Argument, ...]) -> None:
    """Set all arguments. Raises DeviceError where they do not fit the kernel."""
    with device_errors(device):
        kernel_object.set_args(*args)


class BoundLaunch:
    """A kernel with its arguments set for good, its first two dimensions and its group; made by `Queue.bind`.

    kernel_object : its own as long as it lives; args : kept alive with it
    cost : pairs of one conformation that it takes; 0 if its time does not go by them
    divisible : 1 if it may be cut into launches of parts of the first dimension, else 0
    offset : work-items of the first dimension that are left out before the first one
    """

    def __init__(
        self, device: Device, kernel: Kernel, shape: tuple[int, int], group: tuple[int, int, int],
        args: tuple[Argument, ...], cost: float = 0.0, divisible: int = 1,
    ) -> None:  # fmt: skip
        self.kernel, self.shape, self.group, self.args = kernel, shape, group, args
        self.cost, self.divisible, self.offset = cost, divisible, 0
        self._device, self.kernel_object = device, kernel.lend(self)
        set_arguments(device, self.kernel_object, args)

    def change(self, arguments: Arguments) -> None:
        """Set some of the arguments again, numbers alone."""
        parameters = [parameter.name for parameter in self.kernel.signature.parameters]
        args = dict(zip(parameters, self.args, strict=True))
        self.args = self.kernel.signature.arguments({**args, **arguments})
        set_arguments(self._device, self.kernel_object, self.args)

    def narrow(self, first: int, end: int) -> None:
        """Launch from now on the work-items from `first` to `end` of the first dimension alone, in whole groups."""
        group, whole = self.group[0], self.shape[0]
        count = max(1, -(-(end - first) // group)) * group
        self.cost *= count / whole
        self.shape, self.offset = (count, self.shape[1]), first
