"""Kernels bound to their arguments, and the base class of Queue and Recorder, which bind them."""

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

LONG_LAUNCH_PAIRS = 1e10  # longer launches are split, because they would block the display


class Array(Protocol):
    """Array argument of a kernel: a buffer on the device or a piece of a recorded row.

    dtype : of its values; size : in bytes; is_read_only : whether kernels may only read it
    """

    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def size(self) -> int: ...
    @property
    def is_read_only(self) -> bool: ...


class Launch(Protocol):
    """A kernel with its arguments, global size in two dimensions, and work-group size; cost as in BoundLaunch."""

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
    """Set all arguments of a kernel object. Raises DeviceError if they do not match the kernel."""
    with device:
        kernel_object.set_args(*args)


class BoundLaunch:
    """A kernel with fixed arguments, global size in two dimensions, and work-group size; created by `Queue.bind`.

    kernel_object : OpenCL kernel reserved for this launch; args : kept alive with it
    cost : number of pairs per conformation; 0 if the run time does not depend on pairs
    divisible : 1 if the launch may be split along the first dimension, else 0
    offset : index of the first work-item in the first dimension
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
        """Replace some arguments, which must be numbers."""
        parameters = [parameter.name for parameter in self.kernel.signature.parameters]
        args = dict(zip(parameters, self.args, strict=True))
        self.args = self.kernel.signature.arguments({**args, **arguments})
        set_arguments(self._device, self.kernel_object, self.args)

    def narrow(self, first: int, end: int) -> None:
        """Restrict later launches to work-items `first` to `end` of the first dimension, rounded up to whole groups."""
        group, whole = self.group[0], self.shape[0]
        count = max(1, -(-(end - first) // group)) * group
        self.cost *= count / whole
        self.shape, self.offset = (count, self.shape[1]), first


@dataclass(eq=False)
class Binder(ABC):
    """Base class that creates arrays and binds kernels for one device and precision.

    portable : whether to exclude code written for one vendor's compiler
    is_shared : whether launches process several structures
    """

    device: Device
    precision: str
    portable: bool = False
    is_shared: bool = False

    @property
    def dtype(self) -> np.dtype[np.floating]:
        """NumPy type of reals."""
        return np.dtype(self.precision)

    @abstractmethod
    def upload(self, values: ArrayLike, dtype: DTypeLike | None = None) -> Array:
        """Upload values to a read-only array, by default in the binder's precision."""

    def upload_each(self, values: ArrayLike, dtype: DTypeLike | None = None) -> Array:
        """Upload values that may differ between the structures of a molecule."""
        return self.upload(values, dtype)

    def upload_parameters(self, values: ArrayLike, dtype: DTypeLike | None = None) -> Array:
        """Upload charges, well depths or torsion barriers; each structure has a copy if parameters may be scaled."""
        return self.upload(values, dtype)

    @abstractmethod
    def cached(self, key: Hashable, make: Callable[[], ArrayLike]) -> Array:
        """Upload the values that `make` returns; the device caches them by key."""

    @abstractmethod
    def empty(self, n: int, dtype: DTypeLike | None = None) -> Array:
        """Create an uninitialized array of n values, by default reals."""

    def in_common(self, n: int, dtype: DTypeLike | None = None) -> Array:
        """Create an uninitialized array accessed by the host, in shared memory if the device supports it."""
        return self.empty(n, dtype)

    @abstractmethod
    def zeros(self, n: int, dtype: DTypeLike | None = None) -> Array:
        """Create an array of n zeros."""

    @abstractmethod
    def host_array(self, shape: tuple[int, ...], dtype: DTypeLike | None = None) -> NDArray[Any]:
        """Create a host array that the device can access directly."""

    @abstractmethod
    def finish(self) -> None:
        """Wait until all commands are complete."""

    @abstractmethod
    def kernel(self, file: str, name: str, width: int = 1, **defines: int) -> Kernel:
        """Get a kernel in this precision."""

    @abstractmethod
    def bind_kernel(
        self, kernel: Kernel, shape: tuple[int, int], group: tuple[int, int], arguments: Arguments, *,
        cost: float = 0.0, divisible: int = 1,
    ) -> Launch:  # fmt: skip
        """Bind an already built kernel."""

    def bind(
        self, file: str, name: str, shape: tuple[int, int], group: tuple[int, int], arguments: Arguments, *,
        width: int = 1, cost: float = 0.0, divisible: int = 1, **defines: int,
    ) -> Launch:  # fmt: skip
        """Build a kernel and bind its arguments.

        shape : work-items in the first two dimensions; the third is the number of conformations
        arguments : by parameter name; checked against the kernel
        width, defines : of the kernel; cost, divisible : as in BoundLaunch
        """
        kernel = self.kernel(file, name, width, **defines)
        return self.bind_kernel(kernel, shape, group, arguments, cost=cost, divisible=divisible)

    def group_kernel(
        self, file: str, name: str, local_reals: int, most: int | None = None, **defines: int
    ) -> tuple[Kernel, int]:
        """Build a kernel with fixed work-group size GROUP, and return it with that size.

        The size is the largest that the device supports, up to `most`.

        local_reals : reals of local memory per work-item
        """
        group = min(self.device.largest_group, most or self.device.largest_group)
        most_local = self.device.handle.local_mem_size // self.dtype.itemsize
        while local_reals * group > most_local:
            group //= 2
        return self.built_to_fit(group, lambda group: self.kernel(file, name, GROUP=group, **defines))

    def built_to_fit(self, most: int, build: Callable[[int], Kernel], items: int = 1) -> tuple[Kernel, int]:
        """Return the first supported kernel of build(most), build(most // 2), ..., build(1), and its size.

        build : returns a kernel whose work-groups have `items` times the given size

        Raises KernelBuildError without further attempts if a smaller work-group would not help.
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
        """Return the largest work-group size of this kernel on the device."""
        return kernel.most_items

    def _fitted(
        self, kernel: Kernel, shape: tuple[int, int], group: tuple[int, int]
    ) -> tuple[tuple[int, int], tuple[int, int, int]]:
        """Round the global size up to whole groups, and limit the group to the size that the kernel supports."""
        x, y = min(group[0], self._most_items(kernel)), group[1]
        return (whole_groups(shape[0], x), whole_groups(shape[1], y)), (x, y, 1)

    @staticmethod
    def most_uncut(launches: Sequence[Launch]) -> int:
        """Return the largest number of conformations for which no launch is split."""
        cost = max([launch.cost for launch in launches], default=0.0)
        return int(LONG_LAUNCH_PAIRS / cost) if cost else sys.maxsize

    def vector4(self, *values: float) -> np.void:
        """Return four reals as one kernel argument."""
        return _four(values, cl.cltypes.float4 if self.precision == "float32" else cl.cltypes.double4)

    def int4(self, *values: int) -> np.void:
        """Return four integers as one kernel argument."""
        return _four(values, cl.cltypes.int4)


def _four(values: tuple[float, ...], kind: np.dtype[np.void]) -> np.void:
    vector: np.void = np.array([(*values, 0, 0, 0, 0)[:4]], kind)[0]
    return vector


def whole_groups(n: int, group: int) -> int:
    """Round n up to a multiple of the group size; at least one group."""
    return max(1, -(-n // group)) * group
