"""Kernels: built for a device, launched and timed."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyopencl as cl
from numpy.typing import ArrayLike, NDArray

from ..errors import DeviceError, KernelBuildError
from ..paths import shipped
from ..variant import Progress
from .device import Device

# With progress asked for, launches are cut so that each takes about this long.
SLAB_SECONDS = 0.5
FIRST_SLAB_PAIRS = 2e7


def get_kernel(
    device: Device, file: str, name: str, precision: str, width: int = 1, portable: bool = False, **defines: int
) -> cl.Kernel:
    """Kernel `name` of cl/`file`, built for the device and kept: making a kernel object costs more than a launch.

    precision : "float32" or "float64"
    width : reals in a vector
    portable : leave out what is written for one vendor's compiler
    defines : further macros of the kernel

    Raises KernelBuildError with the compiler's words.
    """
    key = (file, name, precision, width, portable, tuple(sorted(defines.items())))
    if key not in device.kernels:
        device.require_precision(precision)
        options = _options(device, precision, width, portable, defines)
        device.kernels[key] = cl.Kernel(_build(device, file, options), name)
    return device.kernels[key]


def _options(device: Device, precision: str, width: int, portable: bool, defines: Mapping[str, int]) -> list[str]:
    macros = {"REAL_BITS": int(precision[-2:]), "WIDTH": width, f"VENDOR_{device.vendor}": 1, **defines}
    if portable:
        macros["PORTABLE"] = 1
    # Floating-point atomics are an extension of OpenCL C 3.0, but for NVIDIA's, which are PTX.
    standard = "CL3.0" if defines.get("NATIVE_ATOMICS") and device.vendor != "NVIDIA" else "CL1.2"
    options = ["-I", str(shipped("cl")), f"-cl-std={standard}", "-cl-mad-enable"]
    if precision == "float32":
        options.append("-cl-denorms-are-zero")
    return options + [f"-D{name}={value}" for name, value in macros.items()]


def _build(device: Device, file: str, options: list[str]) -> cl.Program:
    source = _source(file)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cl.CompilerWarning)  # compilers chat; what they refuse is raised
            program: cl.Program = cl.Program(device.context, source).build(options)
            return program
    except cl.RuntimeError as error:
        raise KernelBuildError(
            f"cl/{file} does not compile on {device.name} with {' '.join(options)}: {error}"
        ) from error


def _source(file: str) -> str:
    return (shipped("cl") / file).read_text()


@dataclass(eq=False)
class Run:
    """One evaluation on a device: moves arrays, launches kernels in order, remembers how long they took.

    progress : called with the share done, 0 to 1, now and then; long launches are then cut into slabs
    """

    device: Device
    precision: str
    progress: Progress | None = None
    portable: bool = False
    events: list[cl.Event] = field(default_factory=list)
    allocated: int = 0

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(self.precision)

    def kernel(self, file: str, name: str, width: int = 1, **defines: int) -> cl.Kernel:
        return get_kernel(self.device, file, name, self.precision, width, self.portable, **defines)

    def upload(self, values: ArrayLike, dtype: Any = None) -> cl.Buffer:
        """A buffer of the values that kernels only read, in the run's precision where no other type is given."""
        array = np.ascontiguousarray(values, dtype or self.dtype)
        self._reserve(array.nbytes)
        return cl.Buffer(self.device.context, cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR, hostbuf=array)

    def empty(self, n: int, dtype: Any = None) -> cl.Buffer:
        """An uninitialised buffer of n values, reals where no other type is given."""
        size = max(1, n) * np.dtype(dtype or self.dtype).itemsize
        self._reserve(size)
        return cl.Buffer(self.device.context, cl.mem_flags.READ_WRITE, size)

    def zeros(self, n: int, dtype: Any = None) -> cl.Buffer:
        """A buffer of n zeros."""
        buffer = self.empty(n, dtype)
        self.clear(buffer)
        return buffer

    def clear(self, buffer: cl.Buffer) -> None:
        """Fill a buffer with zeros."""
        cl.enqueue_fill_buffer(self.device.queue, buffer, np.uint8(0), 0, buffer.size)

    def _reserve(self, size: int) -> None:
        self.allocated += size
        self.device.require_memory(self.allocated, size)

    def download(self, buffer: cl.Buffer, n: int, dtype: Any = None) -> NDArray[Any]:
        """The first n values of a buffer, reals where no other type is given, once everything before is done."""
        array = np.empty(n, dtype or self.dtype)
        self.read(array, buffer)
        return array

    def write(self, buffer: cl.Buffer, values: NDArray[Any]) -> None:
        """Fill a buffer from an array."""
        cl.enqueue_copy(self.device.queue, buffer, values)

    def read(self, array: NDArray[Any], buffer: cl.Buffer) -> None:
        """Fill the array from a buffer, once everything before is done."""
        cl.enqueue_copy(self.device.queue, array, buffer)

    def vector4(self, *values: float) -> NDArray[Any]:
        """Four reals as one kernel argument."""
        kind = cl.cltypes.float4 if self.precision == "float32" else cl.cltypes.double4
        return np.array(tuple(values) + (0,) * (4 - len(values)), dtype=kind)[()]

    def launch(self, kernel: cl.Kernel, shape: tuple[int, ...], group: tuple[int, ...] | None, *args: Any) -> None:
        """Launch over `shape` work-items, padded to whole groups."""
        self.prepare(kernel, shape, group, *args)()

    def prepare(
        self, kernel: cl.Kernel, shape: tuple[int, ...], group: tuple[int, ...] | None, *args: Any
    ) -> Callable[[], None]:
        """A launch with its arguments set, to be called once: setting them takes longer than a short kernel runs."""
        kernel.set_args(*args)

        def launch(kept_alive: tuple[Any, ...] = args) -> None:
            self.events.append(self._enqueue(kernel, shape, group))

        return launch

    def launch_rows(
        self, kernel: cl.Kernel, shape: tuple[int, ...], group: tuple[int, ...], cost: float, *args: Any
    ) -> None:
        """As `launch`; with progress asked for, in slabs of the first dimension that take about half a second each.

        cost : pairs in the whole launch, from which the first slab is guessed
        """
        if self.progress is None:
            self.launch(kernel, shape, group, *args)
            return
        done, slab = 0, _whole_groups(int(shape[0] * min(1.0, FIRST_SLAB_PAIRS / cost)), group[0])
        kernel.set_args(*args)
        while done < shape[0]:
            count = min(slab, shape[0] - done)
            event = self._enqueue(kernel, (count, *shape[1:]), group, done)
            event.wait()
            self.events.append(event)
            done += count
            seconds = max((event.profile.end - event.profile.start) * 1e-9, 1e-6)
            slab = _whole_groups(int(count * min(8.0, SLAB_SECONDS / seconds)), group[0])
            self.progress(done / shape[0])

    def _enqueue(
        self, kernel: cl.Kernel, shape: tuple[int, ...], group: tuple[int, ...] | None, offset: int = 0
    ) -> cl.Event:
        if group is not None:
            shape = tuple(_whole_groups(n, g) for n, g in zip(shape, group, strict=True))
        start = (offset,) + (0,) * (len(shape) - 1) if offset else None
        try:
            return cl.enqueue_nd_range_kernel(self.device.queue, kernel, shape, group, start)
        except cl.MemoryError as error:
            raise DeviceError(f"{self.device.name} lacks free memory for this; choose another device") from error

    @property
    def seconds(self) -> float:
        """From the first kernel's start to the last one's end, by the device's clock."""
        self.device.queue.finish()
        if not self.events:
            return 0.0
        return float(self.events[-1].profile.end - self.events[0].profile.start) * 1e-9


def _whole_groups(n: int, group: int) -> int:
    return max(1, -(-n // group)) * group
