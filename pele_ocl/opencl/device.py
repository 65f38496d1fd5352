"""OpenCL devices: discovery, selection, and the Device class with context, queues and built kernels.

Also device properties that PyOpenCL does not report, and error messages for OpenCL errors.
"""

from __future__ import annotations

import atexit
import gc
import os
import platform
import re
import sys
import threading
import warnings
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from types import TracebackType

import numpy as np
import pyopencl as cl
from numpy.typing import NDArray

from ..common.errors import DeviceError, DeviceMemoryError, DeviceWarning
from .kernel import Kernel, Program
from .loader import find_loader
from .memory import Buffer, BufferBytes, BufferPool, ResultMemory, SpareBuffers, map_whole
from .runtimes import DEVICE_VARIABLE, find_platforms, make_context, name_processors

# Parts of platform names, and the macro VENDOR_<NAME> that kernels can test.
VENDORS = {"nvidia": "NVIDIA", "portable computing": "POCL", "intel": "INTEL", "amd": "AMD", "apple": "APPLE"}

# Queries of the extension cl_ext_float_atomics, which PyOpenCL does not define, and the bit for additions.
FLOAT_ATOMICS = {"float32": 0x4231, "float64": 0x4232}
GLOBAL_ADDITION = 1 << 1

# Clock rates assumed for devices that do not report one.
USUAL_MEGAHERTZ = {"GPU": 1500, "CPU": 3000}

# OpenCL C 3.0 features required for a device-scope fence.
FENCE_FEATURES = {"__opencl_c_atomic_order_acq_rel", "__opencl_c_atomic_scope_device"}

# How to install a runtime, by system and processor; PyOpenCL's PoCL wheel supports only Linux on x86-64.
_RUNTIMES = {
    ("linux", "x86-64"): "install one with: pip install 'pyopencl[pocl]'",
    ("linux", "ARM"): "install PoCL: apt-get install pocl-opencl-icd, or conda install -c conda-forge pyopencl pocl",
    ("win32", "x86-64"): (
        "install the driver of your GPU's vendor, which includes OpenCL, or Intel's runtime for CPUs with: "
        "pip install 'pele-ocl[intel]'"
    ),
    ("win32", "ARM"): "install the OpenCL and OpenGL Compatibility Pack from the Microsoft Store",
    ("darwin", "x86-64"): "install PoCL with: conda install -c conda-forge pyopencl pocl",
    ("darwin", "ARM"): "install PoCL with: conda install -c conda-forge pyopencl pocl",
}


def install_hint(system: str = sys.platform, machine: str = "") -> str:
    """Return instructions to install an OpenCL runtime, by default for this system.

    system, machine : as given by sys.platform and platform.machine()
    """
    machine = (machine or platform.machine()).lower()
    family = "ARM" if machine.startswith(("arm", "aarch")) else "x86-64"
    known = machine in ("x86_64", "amd64", "arm64", "aarch64")
    other = "install the OpenCL runtime of your processor's or GPU's vendor, or PoCL (https://portablecl.org)"
    return _RUNTIMES.get((system, family), other) if known else other


_forks = 0  # number of forks since the first process
_in_use = False  # whether this process or an ancestor created a context
_kept: list[list[object]] = []


def _count_fork() -> None:
    """Count a fork, so that a forked process is recognized without a system call.

    All objects of the parent are kept alive, because releasing an OpenCL object may deadlock on a lock that another
    thread of the parent held.
    """
    global _forks
    _forks += 1
    if _in_use:
        _kept.append(gc.get_objects())


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_count_fork)


@dataclass(frozen=True, eq=False)
class Device:
    """OpenCL device with its context and queues, which are created when first needed.

    Within `with device:`, OpenCL errors are raised as DeviceError. Time-critical code calls `refusal` in an `except`
    clause instead, to avoid the overhead of the context manager.

    index : index in `list_devices()`; 0 is the default
    kind : "GPU", "CPU", "accelerator" or "simulator"
    programs, kernels : built programs and their kernels, by file, name and options
    buffers : bytes of buffers in use; mapped : bytes of host memory that the device accesses directly
    cached : buffers kept for reuse, the oldest first; released if memory is short, like the next five
    tables : small buffers by content
    spare_buffers : unused buffers; pools : those of queues that reuse memory
    staging : unused host arrays for large transfers; removed from the queue while in use
    results : host memory for large results, reused when they are deleted
    spare : unused command queues of `Queue.independent_queue`; further : all command queues created for it
    forks : fork count of the process that created the device; forked processes cannot use it
    units : number of compute units to assume; None for the device's number
    ladder_group : work-group size of the thesis kernels; None for the sizes used in the thesis
    """

    index: int
    handle: cl.Device
    programs: dict[Hashable, Program] = field(default_factory=dict, repr=False)
    kernels: dict[Hashable, Kernel] = field(default_factory=dict, repr=False)
    buffers: BufferBytes = field(default_factory=BufferBytes, repr=False)
    mapped: BufferBytes = field(default_factory=BufferBytes, repr=False)
    cached: dict[Hashable, Buffer] = field(default_factory=dict, repr=False)
    tables: dict[tuple[str, bytes], Buffer] = field(default_factory=dict, repr=False)
    spare_buffers: SpareBuffers = field(default_factory=SpareBuffers, repr=False)
    pools: list[BufferPool] = field(default_factory=list, repr=False)
    staging: deque[NDArray[np.uint8]] = field(default_factory=deque, repr=False)
    results: ResultMemory = field(default_factory=ResultMemory, repr=False)
    spare: deque[cl.CommandQueue] = field(default_factory=deque, repr=False)
    further: list[cl.CommandQueue] = field(default_factory=list, repr=False)
    forks: int = field(default_factory=lambda: _forks, repr=False)
    units: int | None = None
    ladder_group: int | None = None
    _made: list[tuple[cl.Context, cl.CommandQueue, cl.CommandQueue]] = field(default_factory=list, repr=False)
    _making: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        if isinstance(error, cl.Error):
            raise refusal(self, error) from error

    # On Intel's runtime a queue does not keep its context alive, so the Device keeps both.
    @property
    def context(self) -> cl.Context:
        """Context of the device."""
        return self.queues[0]

    @property
    def queue(self) -> cl.CommandQueue:
        """Command queue with profiling."""
        return self.queues[1]

    @property
    def plain_queue(self) -> cl.CommandQueue:
        """Command queue without profiling, which has a lower launch overhead."""
        return self.queues[2]

    def require_same_process(self) -> None:
        """Raise DeviceError after a fork, because NVIDIA's runtime no longer works there."""
        if _forks != self.forks:
            raise DeviceError(
                f"{self} was in use before this process was forked, and OpenCL cannot be used after a fork; start "
                "processes with multiprocessing's method 'spawn', or use OpenCL only in the forked processes"
            )

    @property
    def queues(self) -> tuple[cl.Context, cl.CommandQueue, cl.CommandQueue]:
        """Context, `queue` and `plain_queue`, created on first use.

        Raises DeviceError after a fork.
        """
        global _in_use
        self.require_same_process()
        if not self._made:
            with self._making:
                if not self._made:
                    context = make_context(self.handle)
                    timing = cl.command_queue_properties.PROFILING_ENABLE
                    queues = cl.CommandQueue(context, properties=timing), cl.CommandQueue(context)
                    _in_use = True
                    self._made.append((context, *queues))
                    atexit.register(self._finish)
        return self._made[0]

    def _finish(self) -> None:
        """Wait for all queues, so that no kernel runs while memory is freed at exit."""
        if _forks == self.forks:
            for queue in (*self._made[0][1:], *self.further):
                with suppress(cl.Error):
                    queue.finish()

    @property
    def name(self) -> str:
        return str(self.handle.name).strip()

    @property
    def platform(self) -> str:
        return str(self.handle.platform.name).strip()

    @property
    def version(self) -> str:
        """Version of the runtime, shortened for tables."""
        found = re.search(r"PoCL [\w.+-]+", self.handle.platform.version)
        return found.group() if found else str(self.handle.platform.version).strip()

    @property
    def driver(self) -> str:
        """Version of the driver."""
        return str(self.handle.driver_version).strip()

    @cached_property
    def _title(self) -> str:
        return f"{self.name} ({self.version if self.vendor == 'POCL' else self.platform})"

    def __str__(self) -> str:
        return self._title

    def __reduce__(self) -> tuple[Callable[[str, int], Device], tuple[str, int]]:
        """Pickle by title. Unpickling selects an equal device and raises DeviceError if there is none."""
        alike = [device.handle for device in list_devices() if str(device) == str(self)]
        return _device_again, (str(self), alike.index(self.handle) if self.handle in alike else 0)

    @property
    def kind(self) -> str:
        return self._kind

    @cached_property
    def _kind(self) -> str:
        if "oclgrind" in self.handle.platform.name.lower():
            return "simulator"
        if self.handle.type & cl.device_type.GPU:
            return "GPU"
        return "CPU" if self.handle.type & cl.device_type.CPU else "accelerator"

    @property
    def vendor(self) -> str:
        """Vendor of the OpenCL compiler: NVIDIA, POCL, INTEL, AMD, APPLE or OTHER."""
        name = self.handle.platform.name.lower()
        return next((vendor for part, vendor in VENDORS.items() if part in name), "OTHER")

    @property
    def generation(self) -> int:
        """Value of the macro VENDOR_<NAME>: major compute capability of NVIDIA GPUs, else 1."""
        return max(1, getattr(self.handle, "compute_capability_major_nv", 1)) if self.vendor == "NVIDIA" else 1

    @property
    def runtime_version(self) -> tuple[int, ...]:
        """Version of PoCL, or all numbers in the platform version of other runtimes."""
        version = str(self.handle.platform.version)
        found = re.search(r"PoCL (\d+(?:\.\d+)*)", version)
        return tuple(int(number) for number in re.findall(r"\d+", found[1] if found else version))

    @property
    def rank(self) -> tuple[int, int, tuple[int, ...]]:
        """Sorting key, best first: discrete GPUs, integrated GPUs, CPU runtimes in order of measured speed.

        GPUs are sorted by compute units times clock rate. The fastest CPU runtime is Intel's, then newer versions of
        PoCL.
        """
        place = ["GPU", "CPU", "accelerator", "simulator"].index(self.kind)
        if place == 0:
            size = round(self.handle.max_compute_units * self.clock / 1e6)
            return place, int(bool(self.handle.host_unified_memory)) * 2**40 - size, ()
        intel_first = 0 if "intel" in self.handle.platform.name.lower() else 1
        numbers = (*self.runtime_version, 0, 0, 0, 0)[:4]
        return place, intel_first, tuple(-number for number in numbers)

    @property
    def has_float64(self) -> bool:
        return "cl_khr_fp64" in self.handle.extensions.split()

    def vector_width(self, precision: str) -> int:
        """Return the preferred vector width in reals of `precision`: the SIMD width of a CPU, 1 on GPUs."""
        if self.kind != "CPU":
            return 1
        float32, float64 = self.handle.native_vector_width_float, self.handle.native_vector_width_double
        bits = 32 * float32 if precision == "float32" else 64 * float64
        # PoCL before 3.1 crashes when it compiles 512-bit vectors.
        limit = 256 if self.vendor == "POCL" and self.runtime_version < (3, 1) else 512
        return max(1, min(bits, limit) // (32 if precision == "float32" else 64))

    @property
    def compute_units(self) -> int:
        """Number of CPU cores or GPU multiprocessors."""
        return self.units or int(self.handle.max_compute_units)

    @property
    def clock(self) -> float:
        """Maximum clock rate, Hz; a typical value if the runtime reports 0, as Intel's may."""
        return self._clock

    @cached_property
    def _clock(self) -> float:
        reported = int(self.handle.max_clock_frequency)
        return 1e6 * (reported or USUAL_MEGAHERTZ["GPU" if self.kind == "GPU" else "CPU"])

    @property
    def largest_group(self) -> int:
        """Largest power of two supported as a work-group size; the thesis used it for `outer`."""
        limit = min(self.handle.max_work_group_size, self.handle.max_work_item_sizes[0])
        return 1 << (int(limit).bit_length() - 1)

    def has_float_atomics(self, precision: str) -> bool:
        """Return whether kernels can add reals of `precision` in global memory with one atomic instruction."""
        if self.vendor == "NVIDIA":  # in PTX; float64 from compute capability 6
            return precision == "float32" or self.generation >= 6
        listed = "cl_ext_float_atomics" in self.handle.extensions.split()
        return listed and bool(capabilities(self.handle, FLOAT_ATOMICS[precision]) & GLOBAL_ADDITION)

    @cached_property
    def has_device_fence(self) -> bool:
        """True if a work-group can read sums written by other groups of its launch; needs PTX or OpenCL C 3.0."""
        if self.vendor == "NVIDIA" or "OpenCL 3" not in self.handle.version:
            return self.vendor == "NVIDIA"
        return FENCE_FEATURES <= {feature.name for feature in self.handle.opencl_c_features}

    @cached_property
    def shares_memory(self) -> bool:
        """True if host and kernels access the same memory through a mapped buffer, so that it can stay mapped.

        OpenCL allows runtimes to map a copy, so this is tested: the host must see a value written after mapping.
        """
        if self.kind != "CPU" or not self.handle.host_unified_memory:
            return False
        one = np.ones(1, np.int32)
        with self:
            buffer = Buffer(self.context, cl.mem_flags.READ_WRITE, one.nbytes)
            buffer.dtype = one.dtype
            array = map_whole(self.plain_queue, buffer)
            array[:] = 0
            cl.enqueue_fill_buffer(self.plain_queue, buffer, one, 0, one.nbytes).wait()
        return bool((array == one).all())

    @property
    def can_yield(self) -> bool:
        """True if waiting work-groups yield their core to others; see cl/common/tickets.clh."""
        return self.vendor == "POCL" and sys.platform == "linux" and platform.machine() == "x86_64"

    def require_float_atomics(self, precision: str) -> None:
        """Raise DeviceError if atomic addition is only possible by compare-and-exchange."""
        if not self.has_float_atomics(precision):
            raise DeviceError(
                f"{self} has no atomic addition of {precision} numbers; choose `variant='atomic'`, which does "
                "not need it"
            )

    def require_precision(self, precision: str) -> None:
        """Raise DeviceError if the device does not support `precision`."""
        if precision == "float64" and not self.has_float64:
            others = [d.name for d in list_devices() if d.has_float64]
            use = f"choose `device='{others[0]}'`" if others else install_hint()
            raise DeviceError(f"{self.name} has no float64; choose `precision='float32'`, or {use}")

    @property
    def largest_buffer(self) -> int:
        """Maximum size of a buffer, bytes."""
        return self._sizes[1]

    @property
    def largest_constant(self) -> int:
        """Maximum constant memory of a kernel, bytes."""
        return int(self.handle.max_constant_buffer_size)

    @property
    def memory(self) -> int:
        """Global memory of the device, bytes."""
        return self._sizes[0]

    @cached_property
    def _sizes(self) -> tuple[int, int]:
        """Sizes of the memory and of the largest buffer, bytes; cached, because they are checked for every buffer."""
        return int(self.handle.global_mem_size), int(self.handle.max_mem_alloc_size)

    def require_int64_atomics(self) -> None:
        """Raise DeviceError if the device has no 64-bit atomics."""
        if "cl_khr_int64_base_atomics" not in self.handle.extensions.split():
            raise DeviceError(f"{self} has no 64-bit atomics, which `variant='atomic'` needs in float64; choose rows")

    @property
    def held_bytes(self) -> int:
        """Bytes of all buffers, mapped arrays and registered results, which share one memory on CPUs."""
        counts = self.buffers, self.spare_buffers, self.mapped, self.results.registered
        return sum(count.now for count in counts)

    def require_memory(self, total: int, largest: int) -> None:
        """Raise DeviceMemoryError if `total` additional bytes, or a buffer of `largest` bytes, exceed the memory."""
        memory, buffer = self.memory, self.largest_buffer
        if self.held_bytes + total > memory:
            gc.collect()  # frees plans in reference cycles, which leave memory for reuse
            self.cached.clear()
            self.tables.clear()
            self.spare_buffers.clear()
            for pool in list(self.pools):
                pool.clear()
            self.staging.clear()
            self.results.clear()
        held = self.held_bytes
        if held + total > memory or largest > buffer:
            in_use = f", {held / 2**20:.0f} MiB of which are in use" if held else ""
            advice = "delete plans that are no longer needed, or choose" if held else "choose"
            raise DeviceMemoryError(
                f"this needs {total / 2**20:.0f} MiB on {self.name} (largest buffer {largest / 2**20:.0f} MiB), which "
                f"has {memory / 2**20:.0f} MiB{in_use} (buffers up to {buffer / 2**20:.0f} MiB); {advice} a larger "
                "device"
            )


def capabilities(handle: cl.Device, query: int) -> int:
    """Query a bit field that PyOpenCL does not define; 0 if the device or the OpenCL loader does not support it."""
    loader = find_loader()
    return 0 if loader is None else loader.bits(handle.int_ptr, query)


def refusal(device: Device, error: cl.Error) -> DeviceError:
    """Return the DeviceError for an OpenCL error."""
    if isinstance(error, cl.MemoryError):
        return DeviceMemoryError(f"{device} has not enough free memory for this; choose another device")
    return DeviceError(f"{device} reports an error ({error}); choose another device or variant")


def is_of_a_run(error: DeviceError) -> bool:
    """Return whether the error occurred while a kernel ran; NVIDIA's command queues are then unusable."""
    reason = error.__cause__
    if not isinstance(reason, cl.Error):
        return False
    return reason.routine in ("clFinish", "clWaitForEvents") or reason.code == cl.status_code.INVALID_COMMAND_QUEUE


def _usable(runtime: cl.Platform) -> Iterator[cl.Device]:
    """Yield the usable devices of a platform. Warns about platforms and devices that raise errors."""
    try:
        listed = runtime.get_devices()
    except cl.Error as error:
        if error.code != cl.status_code.DEVICE_NOT_FOUND:  # expected if the hardware of the runtime is missing
            _warn_of("runtime", runtime, error)
        return
    for handle in listed:
        try:
            usable = handle.available and handle.compiler_available
        except cl.Error as error:
            _warn_of("device of the runtime", runtime, error)
            continue
        if usable:
            yield handle


def _warn_of(what: str, runtime: cl.Platform, error: cl.Error) -> None:
    try:
        name = f"{str(runtime.name).strip()!r}"
    except cl.Error:
        name = "without a name"
    warnings.warn(
        f"an OpenCL {what} {name} is left out, because it answers {str(error).strip() or 'with an error'}; reinstall "
        "it, or remove it to avoid this note",
        DeviceWarning,
        stacklevel=2,
    )


@lru_cache(maxsize=1)
def list_devices() -> tuple[Device, ...]:
    """List all usable OpenCL devices, the default first; empty if there are none.

    Issues a DeviceWarning for each runtime or device that raises an error, and skips it.

    >>> devices = pele_ocl.list_devices()
    >>> devices[0].index, devices[0].kind in ("CPU", "GPU")
    (0, True)
    """
    found: list[cl.Device] = []
    for each in find_platforms():
        found += _usable(each)
    name_processors(found)
    ranked = sorted(found, key=lambda handle: Device(0, handle).rank)
    return tuple(Device(index, handle) for index, handle in enumerate(ranked))


_fixed: list[Device] = []


def fix_device(device: Device, units: int | None = None) -> Device:
    """Use this device for the whole process, regardless of later choices. units : as in Device"""
    _fixed[:] = [replace(device, units=units)]
    return _fixed[0]


def get_device(choice: Device | int | str | None = None) -> Device:
    """Select a device: by `choice`, else by the environment variable PELE_OCL_DEVICE, else the default.

    choice : a Device, an index of `list_devices()`, part of a device or platform name in any case, "GPU" or "CPU", or
        the title of a device, as returned by `str(device)`

    Raises DeviceError if no device matches, and after a fork.
    """
    device = choice if isinstance(choice, Device) else _fixed[0] if _fixed else fitting_devices(choice)[0]
    device.require_same_process()
    return device


def fitting_devices(choice: int | str | None = None) -> tuple[Device, ...]:
    """List all devices that match a choice; get_device returns the first."""
    devices = list_devices()
    if not devices:
        raise DeviceError(f"no OpenCL device found; {install_hint()}")
    wanted = str(os.environ.get(DEVICE_VARIABLE, "") if choice is None else choice).strip()
    if not wanted:
        return devices
    if wanted.isdecimal() and int(wanted) < len(devices):
        return (devices[int(wanted)],)
    is_index = wanted.isdecimal() and len(wanted) < 3  # "7" is an index, "4090" part of a name
    titled = tuple(device for device in devices if str(device).lower() == wanted.lower())
    if titled:
        return titled
    named = {device: f"{device.platform} {device.version} {device.name}".lower() for device in devices}
    found = tuple(device for device, name in named.items() if not is_index and wanted.lower() in name)
    found = found or tuple(device for device in devices if device.kind.lower() == wanted.lower())
    if found:
        return found
    known = ", ".join(f"{d.index}: {d}" for d in devices)
    raise DeviceError(f"no OpenCL device fits {wanted!r}; the devices are {known}")


def equal_devices(choice: int | str | None = None) -> tuple[Device, ...]:
    """List the devices that match a choice and have the same title as the first."""
    fitting = fitting_devices(choice)
    return tuple(device for device in fitting if str(device) == str(fitting[0]))


def _device_again(title: str, number: int) -> Device:
    """Return the device of a pickle: the one with this number among equal devices, or the last."""
    if _fixed:
        return _fixed[0]
    alike = fitting_devices(title)
    return alike[min(number, len(alike) - 1)]


def get_cpu_device(preferred: Device) -> Device:
    """Return `preferred` if it is a CPU or simulator, else the best CPU. Raises DeviceError if there is none."""
    if preferred.kind in ("CPU", "simulator"):
        return preferred
    for device in list_devices():
        if device.kind == "CPU":
            return device
    raise DeviceError(f"this variant needs a CPU device, and there is none; {install_hint()}")
