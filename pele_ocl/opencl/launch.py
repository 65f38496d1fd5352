"""Launches whose arguments are set once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyopencl as cl

from .device import Device
from .kernel import Kernel
from .memory import Buffer
from .refusals import device_errors

if TYPE_CHECKING:
    from .run import Run


# A kernel's argument: a buffer, or a number, vector or struct.
Argument = Buffer | np.generic


def set_arguments(device: Device, kernel_object: cl.Kernel, args: tuple[Argument, ...]) -> None:
    """Set all arguments. Raises DeviceError where they do not fit the kernel."""
    with device_errors(device):
        kernel_object.set_args(*args)


class KeptLaunch:
    """A kernel with its arguments set for good, its first two dimensions and its group; made by `Run.keep`.

    kernel_object : its own as long as it lives; args : kept alive with it
    pairs : of one conformation that it takes, where its time goes by them
    divisible : 1 where it may be cut into launches of parts of the first dimension, else 0
    offset : work-items of the first dimension that are left out before the first one
    """

    def __init__(
        self, device: Device, kernel: Kernel, shape: tuple[int, int], group: tuple[int, int, int],
        args: tuple[Argument, ...], pairs: float = 0.0, divisible: int = 1,
    ) -> None:  # fmt: skip
        self.kernel, self.shape, self.group, self.args = kernel, shape, group, args
        self.pairs, self.divisible, self.offset = pairs, divisible, 0
        self.kernel_object = kernel.lend(self)
        set_arguments(device, self.kernel_object, args)

    def narrow(self, first: int, end: int) -> None:
        """Launch from now on the work-items from `first` to `end` of the first dimension alone, in whole groups."""
        group, whole = self.group[0], self.shape[0]
        count = max(1, -(-(end - first) // group)) * group
        self.pairs *= count / whole
        self.shape, self.offset = (count, self.shape[1]), first


class PreparedLaunch:
    """A launch with its arguments set, to be called as often as it is wanted; made by `Run.prepare`."""

    def __init__(
        self, run: Run, kernel: Kernel, shape: tuple[int, ...], group: tuple[int, ...], args: tuple[Argument, ...]
    ) -> None:
        self._run, self._kernel, self._shape, self._group, self._args = run, kernel, shape, group, args
        self._kernel_object = kernel.lend(self)
        set_arguments(run.device, self._kernel_object, args)

    def __call__(self) -> None:
        run = self._run
        run.events.append(run._enqueue(self._kernel, self._kernel_object, self._shape, self._group))
