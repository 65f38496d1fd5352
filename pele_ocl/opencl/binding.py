"""Kernels bound to their arguments: launches, and the interface of who makes them, a queue or the record of a row."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyopencl as cl
from numpy.typing import ArrayLike, DTypeLike, NDArray

from .building import GroupTooLargeError
from .device import Device
from .kernel import Argument, Arguments, Kernel

LONG_LAUNCH_PAIRS = 1e10  # launches of more pairs take longer than displays bear, and are cut


class Array(Protocol):
    """Memory that kernels take: a buffer of a device, or a piece of what a row has.

    dtype : of its values; size : bytes; is_read_only : if kernels may only read it
    """

    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def size(self) -> int: ...
    @property
    def is_read_only(self) -> bool: ...


class Launch(Protocol):
    """A kernel with its arguments, its first two dimensions and its group; cost as in BoundLaunch."""

    @property
    def kernel(self) -> Kernel: ...
    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def group(self) -> tuple[int, int, int]: ...
    @property
    def args(self) -> tuple[Argument, ...]: ...
    @property
    def cost(self) -> float: ...


def set_arguments(device: Device, kernel_object: cl.Kernel, args: tuple[Argument, ...]) -> None:
    """Set all arguments. Raises DeviceError if they do not fit the kernel."""
    with device:
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


@dataclass(eq=False)
class Binder(ABC):
    """Makes arrays and binds kernels for a device in one precision.

    portable : whether code written for one vendor's compiler is left out
    is_shared : whether its launches serve several structures
    """

    device: Device
    precision: str
    portable: bool = False
    is_shared: bool = False

    @property
    def dtype(self) -> np.dtype[np.floating]:
        """Type of reals."""
        return np.dtype(self.precision)

    @abstractmethod
    def upload(self, values: ArrayLike, dtype: DTypeLike | None = None) -> Array:
        """An array of the values that kernels only read, in the binder's precision where no other type is given."""

    def upload_each(self, values: ArrayLike, dtype: DTypeLike | None = None) -> Array:
        """Upload values that each structure of a molecule may have of its own."""
        return self.upload(values, dtype)

    def upload_parameters(self, values: ArrayLike, dtype: DTypeLike | None = None) -> Array:
        """Upload charges, wells or heights of torsions, which each structure has of its own if they may be scaled."""
        return self.upload(values, dtype)

    @abstractmethod
    def cached(self, key: Hashable, make: Callable[[], ArrayLike]) -> Array:
        """Upload what `make` returns; the device keeps it for later uses of the same key."""

    @abstractmethod
    def empty(self, n: int, dtype: DTypeLike | None = None) -> Array:
        """An uninitialised array of n values, reals where no other type is given."""

    def in_common(self, n: int, dtype: DTypeLike | None = None) -> Array:
        """An uninitialised array that the host reads or writes, in memory of both where the device shares it."""
        return self.empty(n, dtype)

    @abstractmethod
    def zeros(self, n: int, dtype: DTypeLike | None = None) -> Array:
        """An array of n zeros."""

    @abstractmethod
    def host_array(self, shape: tuple[int, ...], dtype: DTypeLike | None = None) -> NDArray[Any]:
        """An array of the host that the device reads and fills by itself."""

    @abstractmethod
    def finish(self) -> None:
        """Wait for everything that was started."""

    @abstractmethod
    def kernel(self, file: str, name: str, width: int = 1, **defines: int) -> Kernel:
        """Get a kernel in this precision."""

    @abstractmethod
    def bind_kernel(
        self, kernel: Kernel, shape: tuple[int, int], group: tuple[int, int], arguments: Arguments, *,
        cost: float = 0.0, divisible: int = 1,
    ) -> Launch:  # fmt: skip
        """Bind a kernel that is built already."""

    def bind(
        self, file: str, name: str, shape: tuple[int, int], group: tuple[int, int], arguments: Arguments, *,
        width: int = 1, cost: float = 0.0, divisible: int = 1, **defines: int,
    ) -> Launch:  # fmt: skip
        """Set the arguments of a launch for good.

        shape : work-items in the first two dimensions; the third is how many conformations are computed
        arguments : by the names of the kernel's parameters, which they are checked against
        width, defines : of the kernel; cost, divisible : of BoundLaunch
        """
        kernel = self.kernel(file, name, width, **defines)
        return self.bind_kernel(kernel, shape, group, arguments, cost=cost, divisible=divisible)

    def group_kernel(
        self, file: str, name: str, local_reals: int, most: int | None = None, **defines: int
    ) -> tuple[Kernel, int]:
        """A kernel of fixed work-group size GROUP, and that size: the largest up to `most` that the device allows.

        local_reals : reals of local memory that a work-item needs
        """
        group = min(self.device.largest_group, most or self.device.largest_group)
        most_local = self.device.handle.local_mem_size // self.dtype.itemsize
        while local_reals * group > most_local:
            group //= 2
        return self.built_to_fit(group, lambda group: self.kernel(file, name, GROUP=group, **defines))

    def built_to_fit(self, most: int, build: Callable[[int], Kernel], items: int = 1) -> tuple[Kernel, int]:
        """Find the first of build(most), build(most // 2), ..., build(1) that the device takes, and its number.

        build : returns a kernel whose work-groups have `items` times its number of work-items

        Raises KernelBuildError for errors that a smaller group would not mend, after one build.
        """
        size = most
        while True:
            try:
                kernel = build(size)
                if size == 1 or size * items <= self._most_items(kernel):
                    return kernel, size
            except GroupTooLargeError:
                if size == 1:
                    raise
            size //= 2

    def _most_items(self, kernel: Kernel) -> int:
        """Work-items that a group of this kernel may have on the device."""
        return kernel.most_items

    def _fitted(
        self, kernel: Kernel, shape: tuple[int, int], group: tuple[int, int]
    ) -> tuple[tuple[int, int], tuple[int, int, int]]:
        """Fit a bound launch: its work-items in whole groups, and the group that the kernel may have."""
        x, y = min(group[0], self._most_items(kernel)), group[1]
        return (whole_groups(shape[0], x), whole_groups(shape[1], y)), (x, y, 1)

    @staticmethod
    def most_uncut(launches: Sequence[Launch]) -> int:
        """Count the conformations up to which no launch is so long that it is cut."""
        cost = max([launch.cost for launch in launches], default=0.0)
        return int(LONG_LAUNCH_PAIRS / cost) if cost else sys.maxsize

    def vector4(self, *values: float) -> np.void:
        """Four reals as one kernel argument."""
        return _four(values, cl.cltypes.float4 if self.precision == "float32" else cl.cltypes.double4)

    def int4(self, *values: int) -> np.void:
        """Four integers as one kernel argument."""
        return _four(values, cl.cltypes.int4)


def _four(values: tuple[float, ...], kind: np.dtype[np.void]) -> np.void:
    vector: np.void = np.array([(*values, 0, 0, 0, 0)[:4]], kind)[0]
    return vector


def whole_groups(n: int, group: int) -> int:
    """Work-items of the whole groups that have at least n, one group at least."""
    return max(1, -(-n // group)) * group
