"""OpenCL devices: which there are, which to use, and the Device that owns context, queues and built kernels.

Also the properties of devices that PyOpenCL does not report, and the messages for errors of OpenCL.
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
from .memory import Buffer, BufferBytes, ResultMemory, SpareBuffers, map_whole
from .runtimes import DEVICE_VARIABLE, find_platforms, make_context, name_processors

# From a runtime's platform name to the macro VENDOR_<NAME> that kernels may look at.
VENDORS = {"nvidia": "NVIDIA", "portable computing": "POCL", "intel": "INTEL", "amd": "AMD", "apple": "APPLE"}

# Of the extension cl_ext_float_atomics, which PyOpenCL does not know: queries, and a bit of their answers.
FLOAT_ATOMICS = {"float32": 0x4231, "float64": 0x4232}
GLOBAL_ADDITION = 1 << 1

# Clocks of devices that do not report their own.
USUAL_MEGAHERTZ = {"GPU": 1500, "CPU": 3000}

# The features of OpenCL C 3.0 that a fence over the whole device takes.
FENCE_FEATURES = {"__opencl_c_atomic_order_acq_rel", "__opencl_c_atomic_scope_device"}

# Runtimes by system and processor: PyOpenCL's wheel of PoCL is for one of them alone.
_RUNTIMES = {
    ("linux", "x86-64"): "install one with: pip install 'pyopencl[pocl]'",
    ("linux", "ARM"): "install PoCL: apt-get install pocl-opencl-icd, or conda install -c conda-forge pyopencl pocl",
    ("win32", "x86-64"): (
        "install the driver of your GPU's maker, which brings OpenCL, or Intel's runtime for CPUs with: "
        "pip install 'pele-ocl[intel]'"
    ),
    ("win32", "ARM"): "install the OpenCL and OpenGL Compatibility Pack from the Microsoft Store",
    ("darwin", "x86-64"): "install PoCL with: conda install -c conda-forge pyopencl pocl",
    ("darwin", "ARM"): "install PoCL with: conda install -c conda-forge pyopencl pocl",
}


def install_hint(system: str = sys.platform, machine: str = "") -> str:
    """Return how to install an OpenCL runtime on a system; by default on this one.

    system, machine : as sys.platform and platform.machine() name them
    """
    machine = (machine or platform.machine()).lower()
    family = "ARM" if machine.startswith(("arm", "aarch")) else "x86-64"
    known = machine in ("x86_64", "amd64", "arm64", "aarch64")
    other = "install the OpenCL runtime of your processor's or GPU's maker, or PoCL (https://portablecl.org)"
    return _RUNTIMES.get((system, family), other) if known else other


_forks = 0  # that lie between the first process and this one
_in_use = False  # whether this process, or the one it was forked from, made a context
_kept: list[list[object]] = []


def _count_fork() -> None:
    """Count a fork, so that no call asks the system which process this is.

    All objects of the parent are kept. To free one of OpenCL's could wait for ever for a lock that a thread of the
    parent held.
    """
    global _forks
    _forks += 1
    if _in_use:
        _kept.append(gc.get_objects())


if hasattr(os, "register_at_fork"):  # not on Windows, where nothing forks
    os.register_at_fork(after_in_child=_count_fork)


@dataclass(frozen=True, eq=False)
class Device:
    """One OpenCL device with its context and queues, made when first needed.

    Within `with device:` whatever OpenCL refuses is raised as DeviceError; `try` and `refusal` do the same without
    calls of their own, for the shortest ways.

    index : index in `list_devices()`; 0 is the default
    kind : "GPU", "CPU", "accelerator" or "simulator"
    programs, kernels : built programs and their kernels, by file, name and options
    buffers : bytes of the device's buffers in use; mapped : bytes of host memory that the device reads and fills
    cached : buffers that save work where they are wanted again, the oldest first; dropped where memory is short
    tables : small buffers by their contents, dropped alike
    spare_buffers : buffers that are not in use, dropped alike
    staging : such memory, cached for large reads and dropped alike; whoever reads takes it out meanwhile
    results : host memory of large results, reused after they are gone, dropped alike
    spare : command queues that `Queue.beside` lent and that are free; further : all that it made
    forks : that came before the process whose device this is; one forked from it cannot use it
    units : compute units that layouts go by, where they are not the device's own
    ladder_group : work-items of a group in kernels of the thesis; None for as many as the thesis had
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

    # On Intel's runtime a queue does not keep its context alive, so the Device holds both.
    @property
    def context(self) -> cl.Context:
        """Context of all that is computed on the device."""
        return self.queues[0]

    @property
    def queue(self) -> cl.CommandQueue:
        """Queue that takes times."""
        return self.queues[1]

    @property
    def plain_queue(self) -> cl.CommandQueue:
        """Queue that takes no times, and so launches faster."""
        return self.queues[2]

    def require_same_process(self) -> None:
        """Raise DeviceError after a fork, as NVIDIA's runtime then answers no question about a device."""
        if _forks != self.forks:
            raise DeviceError(
                f"{self} was in use before this process was forked, and OpenCL does not survive a fork; start "
                "processes with multiprocessing's method 'spawn', or use OpenCL in the forked processes alone"
            )

    @property
    def queues(self) -> tuple[cl.Context, cl.CommandQueue, cl.CommandQueue]:
        """Context, `queue` and `plain_queue`, made by the thread that first needs them.

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
        """Wait for what was started, so that no kernel is at work while the process ends and its memory is freed."""
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
        """Version of the runtime, short enough for a table."""
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
        """Pickle by title: reading finds a device like it. Raises DeviceError if there is none."""
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
        """NVIDIA, POCL, INTEL, AMD, APPLE or OTHER: the vendor of the compiler that builds the kernels."""
        name = self.handle.platform.name.lower()
        return next((vendor for part, vendor in VENDORS.items() if part in name), "OTHER")

    @property
    def generation(self) -> int:
        """Value of the macro VENDOR_<NAME>: the major compute capability of NVIDIA's GPUs, 1 for all others."""
        return max(1, getattr(self.handle, "compute_capability_major_nv", 1)) if self.vendor == "NVIDIA" else 1

    @property
    def runtime_version(self) -> tuple[int, ...]:
        """Numbers of PoCL's version; for another runtime, all numbers of its platform's version."""
        version = str(self.handle.platform.version)
        found = re.search(r"PoCL (\d+(?:\.\d+)*)", version)
        return tuple(int(number) for number in re.findall(r"\d+", found[1] if found else version))

    @property
    def rank(self) -> tuple[int, int, tuple[int, ...]]:
        """Sorting key, best first: GPUs with memory of their own, other GPUs, CPU runtimes by measured speed.

        GPUs go by units and clock; of the CPU runtimes Intel's is the fastest, then newer PoCL, then older.
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
        """Reals of `precision` that a kernel should compute at once: 1 on GPUs, a SIMD register's worth on CPUs."""
        if self.kind != "CPU":
            return 1
        float32, float64 = self.handle.native_vector_width_float, self.handle.native_vector_width_double
        bits = 32 * float32 if precision == "float32" else 64 * float64
        # PoCL before 3.1 crashes while compiling 512-bit vectors.
        limit = 256 if self.vendor == "POCL" and self.runtime_version < (3, 1) else 512
        return max(1, min(bits, limit) // (32 if precision == "float32" else 64))

    @property
    def compute_units(self) -> int:
        """Cores of a CPU, multiprocessors of a GPU."""
        return self.units or int(self.handle.max_compute_units)

    @property
    def clock(self) -> float:
        """Clocks a second, at most; a usual number if the runtime reports 0, which Intel's may."""
        return self._clock

    @cached_property
    def _clock(self) -> float:
        reported = int(self.handle.max_clock_frequency)
        return 1e6 * (reported or USUAL_MEGAHERTZ["GPU" if self.kind == "GPU" else "CPU"])

    @property
    def largest_group(self) -> int:
        """Largest power of two that the device takes for a work-group's size; the thesis sized `outer` so."""
        limit = min(self.handle.max_work_group_size, self.handle.max_work_item_sizes[0])
        return 1 << (int(limit).bit_length() - 1)

    def has_float_atomics(self, precision: str) -> bool:
        """Return whether kernels may add to reals of `precision` in global memory by one atomic instruction."""
        if self.vendor == "NVIDIA":  # PTX has it in 32 bits everywhere, in 64 from compute capability 6 on
            return precision == "float32" or self.generation >= 6
        listed = "cl_ext_float_atomics" in self.handle.extensions.split()
        return listed and bool(capabilities(self.handle, FLOAT_ATOMICS[precision]) & GLOBAL_ADDITION)

    @cached_property
    def has_device_fence(self) -> bool:
        """Return whether a group can read sums of other groups of its launch, with PTX or OpenCL C 3.0."""
        if self.vendor == "NVIDIA" or "OpenCL 3" not in self.handle.version:
            return self.vendor == "NVIDIA"
        return FENCE_FEATURES <= {feature.name for feature in self.handle.opencl_c_features}

    @cached_property
    def shares_memory(self) -> bool:
        """Return whether a mapped buffer is the memory that kernels work in, as on CPUs, so that one mapping is enough.

        OpenCL allows a runtime to map a copy, so it is tested: the array must have what a command writes after mapping.
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
        """Return whether work that waits for other work yields its core to it; cl/common/tickets.clh."""
        return self.vendor == "POCL" and sys.platform == "linux" and platform.machine() == "x86_64"

    def require_float_atomics(self, precision: str) -> None:
        """Raise DeviceError if only compare-exchange is there to add atomically."""
        if not self.has_float_atomics(precision):
            raise DeviceError(
                f"{self} has no atomic addition of {precision} numbers; choose `variant='atomic'`, which does without"
            )

    def require_precision(self, precision: str) -> None:
        """Raise DeviceError unless the device computes in `precision`."""
        if precision == "float64" and not self.has_float64:
            others = [d.name for d in list_devices() if d.has_float64]
            use = f"choose `device='{others[0]}'`" if others else install_hint()
            raise DeviceError(f"{self.name} has no float64; choose `precision='float32'`, or {use}")

    @property
    def largest_buffer(self) -> int:
        """Bytes that one buffer may have."""
        return self._sizes[1]

    @property
    def largest_constant(self) -> int:
        """Bytes that a kernel may have in constant memory."""
        return int(self.handle.max_constant_buffer_size)

    @property
    def memory(self) -> int:
        """Bytes of the device's memory."""
        return self._sizes[0]

    @cached_property
    def _sizes(self) -> tuple[int, int]:
        """Bytes of the memory and of its largest buffer: every buffer that is made asks for them."""
        return int(self.handle.global_mem_size), int(self.handle.max_mem_alloc_size)

    def require_int64_atomics(self) -> None:
        """Raise DeviceError if 64-bit numbers cannot be exchanged atomically."""
        if "cl_khr_int64_base_atomics" not in self.handle.extensions.split():
            raise DeviceError(f"{self} has no 64-bit atomics, which `variant='atomic'` needs in float64; choose rows")

    @property
    def held_bytes(self) -> int:
        """Bytes of all buffers, mapped arrays and registered results, of any plan; on CPUs all are of one memory."""
        counts = self.buffers, self.spare_buffers, self.mapped, self.results.registered
        return sum(count.now for count in counts)

    def require_memory(self, total: int, largest: int) -> None:
        """Raise DeviceMemoryError unless `total` more bytes, the largest buffer `largest` bytes, fit the device."""
        memory, buffer = self.memory, self.largest_buffer
        if self.held_bytes + total > memory:
            self.cached.clear()
            self.tables.clear()
            self.spare_buffers.clear()
            self.staging.clear()
            self.results.clear()
            gc.collect()  # plans that nobody can reach any more
        held = self.held_bytes
        if held + total > memory or largest > buffer:
            in_use = f", {held / 2**20:.0f} MiB of them in use" if held else ""
            advice = "drop plans that are no longer needed, or choose" if held else "choose"
            raise DeviceMemoryError(
                f"this needs {total / 2**20:.0f} MiB on {self.name} (largest buffer {largest / 2**20:.0f} MiB), which "
                f"has {memory / 2**20:.0f} MiB{in_use} (buffers up to {buffer / 2**20:.0f} MiB); {advice} a larger "
                "device"
            )


def capabilities(handle: cl.Device, query: int) -> int:
    """Ask for a bit field that PyOpenCL does not know; 0 if the device refuses or OpenCL's loader cannot be reached."""
    loader = find_loader()
    return 0 if loader is None else loader.bits(handle.int_ptr, query)


def refusal(device: Device, error: cl.Error) -> DeviceError:
    """Say an error of OpenCL's as a sentence about the device."""
    if isinstance(error, cl.MemoryError):
        return DeviceMemoryError(f"{device} lacks free memory for this; choose another device")
    return DeviceError(f"{device} refuses the work ({error}); choose another device or variant")


def is_of_a_run(error: DeviceError) -> bool:
    """Return whether a device failed while it ran a kernel, not before; NVIDIA's then lose their queue."""
    reason = error.__cause__
    if not isinstance(reason, cl.Error):
        return False
    return reason.routine in ("clFinish", "clWaitForEvents") or reason.code == cl.status_code.INVALID_COMMAND_QUEUE


def _usable(runtime: cl.Platform) -> Iterator[cl.Device]:
    """List the devices of a platform that can compute. Warns if it, or one of them, answers with an error."""
    try:
        listed = runtime.get_devices()
    except cl.Error as error:
        if error.code != cl.status_code.DEVICE_NOT_FOUND:  # which is no trouble: a runtime without its hardware
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
        "it, or remove it to be rid of this note",
        DeviceWarning,
        stacklevel=2,
    )


@lru_cache(maxsize=1)
def list_devices() -> tuple[Device, ...]:
    """Every usable OpenCL device, the default first. Empty if there is none.

    Warns with DeviceWarning about runtimes and devices that raise an error; others can be used.

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
    """Let this be the device of the whole process, whatever is chosen; units : as a Device has them."""
    _fixed[:] = [replace(device, units=units)]
    return _fixed[0]


def get_device(choice: Device | int | str | None = None) -> Device:
    """Choose the device to use: `choice`, else the environment variable PELE_OCL_DEVICE, else the default.

    choice : a Device, an index of `list_devices()`, part of a device's or platform's name in any case, or its kind,
        "GPU" or "CPU"; or a title, such as `str(device)`, with the platform

    Raises DeviceError if nothing fits the choice or there is no device; and after a fork.
    """
    device = choice if isinstance(choice, Device) else _fixed[0] if _fixed else fitting_devices(choice)[0]
    device.require_same_process()
    return device


def fitting_devices(choice: int | str | None = None) -> tuple[Device, ...]:
    """List all devices that fit a choice of get_device, which takes the first."""
    devices = list_devices()
    if not devices:
        raise DeviceError(f"no OpenCL device found; {install_hint()}")
    wanted = str(os.environ.get(DEVICE_VARIABLE, "") if choice is None else choice).strip()
    if not wanted:
        return devices
    if wanted.isdecimal() and int(wanted) < len(devices):
        return (devices[int(wanted)],)
    is_index = wanted.isdecimal() and len(wanted) < 3  # "7" is no part of a name, "4090" is
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
    """List the devices that fit a choice and have the title of the first one."""
    fitting = fitting_devices(choice)
    return tuple(device for device in fitting if str(device) == str(fitting[0]))


def _device_again(title: str, number: int) -> Device:
    """Find the device of a pickle: this one of all that have its title, or the last."""
    if _fixed:
        return _fixed[0]
    alike = fitting_devices(title)
    return alike[min(number, len(alike) - 1)]


def get_cpu_device(preferred: Device) -> Device:
    """`preferred` where it is a CPU or simulates one, else the best CPU. Raises DeviceError if there is none."""
    if preferred.kind in ("CPU", "simulator"):
        return preferred
    for device in list_devices():
        if device.kind == "CPU":
            return device
    raise DeviceError(f"this variant runs on a CPU device and there is none; {install_hint()}")
