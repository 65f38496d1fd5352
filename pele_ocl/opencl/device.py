"""OpenCL devices: which there are, which to use, and the Device that owns context, queues and built kernels."""

from __future__ import annotations

import ctypes
import os
import re
import threading
import weakref
from collections import deque
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from ..errors import DeviceError
from .runtimes import announced_runtimes

if TYPE_CHECKING:
    from .building import Kernel

with announced_runtimes():
    import pyopencl as cl

    try:
        PLATFORMS = cl.get_platforms()  # the first call is when the loader looks
    except cl.Error:  # it found no runtime at all
        PLATFORMS = []

DEVICE_VARIABLE = "PELE_OCL_DEVICE"
INSTALL_HINT = "install one with: pip install 'pyopencl[pocl]'"

# From a runtime's platform name to the macro VENDOR_<NAME> that kernels may look at.
VENDORS = {"nvidia": "NVIDIA", "portable computing": "POCL", "intel": "INTEL", "amd": "AMD", "apple": "APPLE"}


# Of the extension cl_ext_float_atomics, which PyOpenCL does not know: queries, and a bit of what they answer.
FLOAT_ATOMICS = {"float32": 0x4231, "float64": 0x4232}
GLOBAL_ADDITION = 1 << 1


# Of OpenCL C 3.0: what a fence over the whole device takes.
FENCE_FEATURES = {"__opencl_c_atomic_order_acq_rel", "__opencl_c_atomic_scope_device"}


class Buffer(cl.Buffer):
    """A buffer that can be counted: PyOpenCL's own take no weak references."""


class BufferBytes:
    """The bytes of all buffers of a device: `now`, and the `most` there were since `start`.

    Any thread may count. A finalizer may run at any place in any thread, within `count` as well, so it takes no lock:
    it leaves a note that the next reader takes in.
    """

    def __init__(self) -> None:
        self.most = 0
        self._now = 0
        self._released: deque[int] = deque()
        self._lock = threading.Lock()

    @property
    def now(self) -> int:
        """Bytes of the buffers there are."""
        with self._lock:
            return self._settled()

    def start(self) -> None:
        """Forget how many there were before."""
        with self._lock:
            self.most = self._settled()

    def count(self, buffer: Buffer) -> None:
        """Count a new buffer, until it is gone."""
        size = int(buffer.size)
        with self._lock:
            self._now = self._settled() + size
            self.most = max(self.most, self._now)
        weakref.finalize(buffer, self._released.append, size).atexit = False

    def _settled(self) -> int:
        while self._released:
            self._now -= self._released.popleft()
        return self._now


@dataclass(frozen=True, eq=False)
class Device:
    """One OpenCL device with its context and queues, made when first needed.

    index : place in `list_devices()`; 0 is the default
    kind : "GPU", "CPU", "accelerator" or "simulator"
    programs, kernels : built programs and their kernels by what they were built from
    buffers : how many bytes they hold
    lock : nothing here needs it
    """

    index: int
    handle: cl.Device
    programs: dict[Any, cl.Program] = field(default_factory=dict, repr=False)
    kernels: dict[Any, Kernel] = field(default_factory=dict, repr=False)
    buffers: BufferBytes = field(default_factory=BufferBytes, repr=False)
    lock: threading.RLock = field(default_factory=threading.RLock, repr=False)
    _made: list[tuple[cl.Context, cl.CommandQueue, cl.CommandQueue]] = field(default_factory=list, repr=False)
    _making: threading.Lock = field(default_factory=threading.Lock, repr=False)

    # On Intel's runtime a queue does not keep its context alive, so the Device holds both.
    @property
    def context(self) -> cl.Context:
        """The context of all that is computed on the device."""
        return self._queues[0]

    @property
    def queue(self) -> cl.CommandQueue:
        """The queue that takes the times of what runs in it."""
        return self._queues[1]

    @property
    def plain_queue(self) -> cl.CommandQueue:
        """The queue that takes no times, and so launches faster."""
        return self._queues[2]

    @property
    def _queues(self) -> tuple[cl.Context, cl.CommandQueue, cl.CommandQueue]:
        """The context and both queues, made by the thread that first needs them."""
        if not self._made:
            with self._making:
                if not self._made:
                    context = cl.Context([self.handle])
                    timing = cl.command_queue_properties.PROFILING_ENABLE
                    queues = cl.CommandQueue(context, properties=timing), cl.CommandQueue(context)
                    self._made.append((context, *queues))
        return self._made[0]

    @property
    def name(self) -> str:
        return str(self.handle.name).strip()

    @property
    def platform(self) -> str:
        return str(self.handle.platform.name).strip()

    @property
    def version(self) -> str:
        """The runtime's version, short enough for a table."""
        found = re.search(r"PoCL [\w.+-]+", self.handle.platform.version)
        return found.group() if found else str(self.handle.platform.version).strip()

    @property
    def driver(self) -> str:
        """The driver's version."""
        return str(self.handle.driver_version).strip()

    @cached_property
    def _title(self) -> str:
        return f"{self.name} ({self.version if self.vendor == 'POCL' else self.platform})"

    def __str__(self) -> str:
        return self._title

    @property
    def kind(self) -> str:
        return _kind(self.handle)

    @property
    def vendor(self) -> str:
        """NVIDIA, POCL, INTEL, AMD, APPLE or OTHER: whose compiler builds the kernels."""
        name = self.handle.platform.name.lower()
        return next((vendor for part, vendor in VENDORS.items() if part in name), "OTHER")

    @property
    def has_float64(self) -> bool:
        return "cl_khr_fp64" in self.handle.extensions.split()

    def vector_width(self, precision: str) -> int:
        """Reals of `precision` that a kernel should compute at once: 1 on GPUs, a SIMD register's worth on CPUs."""
        if self.kind != "CPU":
            return 1
        float32, float64 = self.handle.native_vector_width_float, self.handle.native_vector_width_double
        bits = 32 * float32 if precision == "float32" else 64 * float64
        # PoCL before 3.1 crashes while compiling 512-bit vectors.
        limit = 256 if self.vendor == "POCL" and self._pocl_version < (3, 1) else 512
        return max(1, min(bits, limit) // (32 if precision == "float32" else 64))

    @property
    def compute_units(self) -> int:
        """Cores of a CPU, multiprocessors of a GPU."""
        return int(self.handle.max_compute_units)

    @property
    def clock(self) -> float:
        """Clocks a second, at most."""
        return 1e6 * int(self.handle.max_clock_frequency)

    @property
    def largest_group(self) -> int:
        """The largest power of two that the device takes as a work-group's size; the thesis sized `outer` so."""
        limit = min(self.handle.max_work_group_size, self.handle.max_work_item_sizes[0])
        return 1 << (int(limit).bit_length() - 1)

    @property
    def _pocl_version(self) -> tuple[int, int]:
        found = re.search(r"PoCL (\d+)\.(\d+)", self.handle.platform.version)
        return (int(found[1]), int(found[2])) if found else (0, 0)

    def has_float_atomics(self, precision: str) -> bool:
        """Whether kernels may add to reals of `precision` in global memory by one atomic instruction."""
        if self.vendor == "NVIDIA":  # PTX has it in 32 bits everywhere, in 64 from compute capability 6 on
            return precision == "float32" or getattr(self.handle, "compute_capability_major_nv", 0) >= 6
        listed = "cl_ext_float_atomics" in self.handle.extensions.split()
        return listed and bool(_capabilities(self.handle, FLOAT_ATOMICS[precision]) & GLOBAL_ADDITION)

    @cached_property
    def has_device_fence(self) -> bool:
        """Whether a group may take over what others of its launch wrote: by PTX on NVIDIA, else by OpenCL C 3.0."""
        if self.vendor == "NVIDIA" or "OpenCL 3" not in self.handle.version:
            return self.vendor == "NVIDIA"
        return FENCE_FEATURES <= {feature.name for feature in self.handle.opencl_c_features}

    def require_float_atomics(self, precision: str) -> None:
        """Raise DeviceError where only compare-exchange is there to add atomically."""
        if not self.has_float_atomics(precision):
            raise DeviceError(
                f"{self} has no atomic addition of {precision} numbers; choose --variant atomic, which does without"
            )

    def require_precision(self, precision: str) -> None:
        """Raise DeviceError unless the device computes in `precision`."""
        if precision == "float64" and not self.has_float64:
            others = [d.name for d in list_devices() if d.has_float64]
            use = f"choose --device '{others[0]}'" if others else INSTALL_HINT
            raise DeviceError(f"{self.name} has no float64; choose --precision float32, or {use}")

    @property
    def largest_buffer(self) -> int:
        """Bytes that one buffer may have."""
        return int(self.handle.max_mem_alloc_size)

    @property
    def largest_constant(self) -> int:
        """Bytes that a kernel may have in constant memory."""
        return int(self.handle.max_constant_buffer_size)

    @property
    def memory(self) -> int:
        """Bytes of the device's memory."""
        return int(self.handle.global_mem_size)

    def require_int64_atomics(self) -> None:
        """Raise DeviceError where 64-bit numbers cannot be exchanged atomically."""
        if "cl_khr_int64_base_atomics" not in self.handle.extensions.split():
            raise DeviceError(f"{self} has no 64-bit atomics, which --variant atomic needs in float64; choose rows")

    def require_memory(self, total: int, largest: int) -> None:
        """Raise DeviceError unless `total` bytes, the largest buffer `largest` bytes, fit the device."""
        memory, buffer = self.memory, self.largest_buffer
        if total > memory or largest > buffer:
            raise DeviceError(
                f"this needs {total / 2**20:.0f} MiB on {self.name} (largest buffer {largest / 2**20:.0f} MiB), which "
                f"has {memory / 2**20:.0f} MiB (buffers up to {buffer / 2**20:.0f} MiB); choose a larger device"
            )


def _capabilities(handle: cl.Device, query: int) -> int:
    """What clGetDeviceInfo answers to a query for a bit field; 0 where it refuses or cannot be reached.

    PyOpenCL passes on the queries that it knows, so the loader it is linked with is asked directly.
    """
    bits = ctypes.c_uint64(0)
    try:
        ask = ctypes.CDLL(cl._cl.__file__).clGetDeviceInfo
    except (OSError, AttributeError):
        return 0
    ask.argtypes = [ctypes.c_void_p, ctypes.c_uint, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p]
    refused = ask(handle.int_ptr, query, ctypes.sizeof(bits), ctypes.byref(bits), None)
    return 0 if refused else bits.value


def _kind(handle: cl.Device) -> str:
    if "oclgrind" in handle.platform.name.lower():
        return "simulator"
    if handle.type & cl.device_type.GPU:
        return "GPU"
    return "CPU" if handle.type & cl.device_type.CPU else "accelerator"


def _rank(handle: cl.Device) -> tuple[int, int, str]:
    """Sorting key, best first: GPUs with memory of their own, other GPUs, CPU runtimes by measured speed.

    GPUs go by units and clock; of the CPU runtimes Intel's is the fastest, then newer PoCL, then older.
    """
    kind = ["GPU", "CPU", "accelerator", "simulator"].index(_kind(handle))
    if kind == 0:
        size = handle.max_compute_units * handle.max_clock_frequency
        return kind, int(bool(handle.host_unified_memory)) * 2**40 - size, ""
    intel_first = 0 if "intel" in handle.platform.name.lower() else 1
    newest_first = "".join(chr(255 - ord(c)) for c in handle.platform.version if ord(c) < 256)
    return kind, intel_first, newest_first


@lru_cache(maxsize=1)
def list_devices() -> tuple[Device, ...]:
    """Every usable OpenCL device, the default first. Empty where there is none."""
    handles = []
    for platform in PLATFORMS:
        try:
            handles += [handle for handle in platform.get_devices() if handle.available and handle.compiler_available]
        except cl.Error:  # a runtime that is installed but finds no hardware
            continue
    return tuple(Device(index, handle) for index, handle in enumerate(sorted(handles, key=_rank)))


def get_device(choice: Device | int | str | None = None) -> Device:
    """The device to use: `choice`, else the environment variable PELE_OCL_DEVICE, else the default.

    choice : a Device, an index of `list_devices()`, or part of a device's or platform's name in any case

    Raises DeviceError where nothing fits the choice or there is no device.
    """
    if isinstance(choice, Device):
        return choice
    devices = list_devices()
    if not devices:
        raise DeviceError(f"no OpenCL device found; {INSTALL_HINT}")
    wanted = str(os.environ.get(DEVICE_VARIABLE, "") if choice is None else choice).strip()
    if not wanted:
        return devices[0]
    if wanted.isdecimal() and int(wanted) < len(devices):
        return devices[int(wanted)]
    is_index = wanted.isdecimal() and len(wanted) < 3  # "7" is no part of a name, "4090" is
    for device in devices:
        if not is_index and wanted.lower() in f"{device.platform} {device.version} {device.name}".lower():
            return device
    known = ", ".join(f"{d.index}: {d}" for d in devices)
    raise DeviceError(f"no OpenCL device fits {wanted!r}; there are {known}")


def get_cpu_device(preferred: Device) -> Device:
    """`preferred` where it is a CPU or simulates one, else the best CPU. Raises DeviceError where there is none."""
    if preferred.kind in ("CPU", "simulator"):
        return preferred
    for device in list_devices():
        if device.kind == "CPU":
            return device
    raise DeviceError(f"this variant runs on a CPU device and there is none; {INSTALL_HINT}")
