"""Kernels: launched on a device and timed, with the arrays that they work on."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pyopencl as cl
from numpy.typing import ArrayLike, NDArray

from ..errors import DeviceError, KernelBuildError
from ..variant import Progress
from .building import Kernel, get_kernel
from .device import Buffer, Device

# Launches with progress asked for, or longer than displays bear, are cut so that each takes about this long.
SLAB_SECONDS = 0.5
FIRST_SLAB_PAIRS = 2e7
LONG_LAUNCH_PAIRS = 1e10


@contextmanager
def _device_errors(device: Device) -> Iterator[None]:
    """What OpenCL refuses, as a sentence about the device."""
    try:
        yield
    except cl.MemoryError as error:
        raise DeviceError(f"{device} lacks free memory for this; choose another device") from error
    except cl.Error as error:
        raise DeviceError(f"{device} refuses the work ({error}); choose another device or variant") from error


class KeptLaunch:
    """A kernel with its arguments set for good, its first two dimensions and its group; made by `Run.keep`.

    kernel_object : its own as long as it lives; args : kept alive with it
    pairs : of one conformation that it takes, where that is what its time goes by
    divisible : 1 where it may be cut into launches of parts of the first dimension, else 0
    """

    def __init__(
        self, kernel: Kernel, shape: tuple[int, int], group: tuple[int, int, int], args: tuple[Any, ...],
        pairs: float = 0.0, divisible: int = 1,
    ) -> None:  # fmt: skip
        self.kernel, self.shape, self.group, self.args = kernel, shape, group, args
        self.pairs, self.divisible = pairs, divisible
        self.kernel_object = kernel.lend(self)
        self.kernel_object.set_args(*args)


class PreparedLaunch:
    """A launch with its arguments set, as often as it is called; made by `Run.prepare`."""

    def __init__(
        self, run: Run, kernel: Kernel, shape: tuple[int, ...], group: tuple[int, ...], args: tuple[Any, ...]
    ) -> None:
        self._run, self._kernel, self._shape, self._group, self._args = run, kernel, shape, group, args
        self._kernel_object = kernel.lend(self)
        self._kernel_object.set_args(*args)

    def __call__(self) -> None:
        run = self._run
        run.events.append(run._enqueue(self._kernel, self._kernel_object, self._shape, self._group))


@dataclass(eq=False)
class Run:
    """One evaluation on a device: moves arrays, launches kernels in order, remembers how long they took.

    A run belongs to one thread. Several may be under way on a device at once, in threads or in callbacks. All that a
    run starts waits in one queue; before its buffers go to a run with the other `profile`, whose queue is another one,
    it must be finished.

    profile : whether times are wanted; launches are dearer then
    events : of the launches, in order; firsts : which of them were a kernel's first on the device
    steps : the first launch of each step that was begun, by name
    """

    device: Device
    precision: str
    portable: bool = False
    profile: bool = True
    events: list[cl.Event] = field(default_factory=list)
    firsts: set[int] = field(default_factory=set)
    steps: dict[str, int] = field(default_factory=dict)
    allocated: int = 0

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(self.precision)

    @property
    def queue(self) -> cl.CommandQueue:
        return self.device.queue if self.profile else self.device.plain_queue

    def anew(self, profile: bool) -> Run:
        """Another run on the same device, with or without times."""
        return Run(self.device, self.precision, profile=profile)

    def kernel(self, file: str, name: str, width: int = 1, **defines: int) -> Kernel:
        """As get_kernel, in the run's precision."""
        return get_kernel(self.device, file, name, self.precision, width, self.portable, **defines)

    def group_kernel(
        self, file: str, name: str, local_reals: int, most: int | None = None, **defines: int
    ) -> tuple[Kernel, int]:
        """A kernel of fixed work-group size GROUP, and that size: the largest up to `most` that the device allows it.

        local_reals : reals of local memory that a work-item needs
        """
        group = min(self.device.largest_group, most or self.device.largest_group)
        most_local = self.device.handle.local_mem_size // self.dtype.itemsize
        while local_reals * group > most_local:
            group //= 2
        while True:
            try:
                kernel = self.kernel(file, name, GROUP=group, **defines)
                if group <= self._most_items(kernel):
                    return kernel, group
            except KernelBuildError:  # how some compilers say that the group is too large
                if group == 1:
                    raise
            group //= 2

    def _most_items(self, kernel: Kernel) -> int:
        """Work-items that a group of this kernel may have on the device."""
        return kernel.most_items

    def upload(self, values: ArrayLike, dtype: Any = None) -> cl.Buffer:
        """A buffer of the values that kernels only read, in the run's precision where no other type is given."""
        array = np.ascontiguousarray(values, dtype or self.dtype)
        if array.size == 0:  # OpenCL has no empty buffers
            return self.empty(0, dtype)
        self._reserve(array.nbytes)
        flags = cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR
        with _device_errors(self.device):
            buffer = Buffer(self.device.context, flags, hostbuf=array)
        self.device.buffers.count(buffer)
        return buffer

    def empty(self, n: int, dtype: Any = None) -> cl.Buffer:
        """An uninitialised buffer of n values, reals where no other type is given."""
        size = max(1, n) * np.dtype(dtype or self.dtype).itemsize
        self._reserve(size)
        with _device_errors(self.device):
            buffer = Buffer(self.device.context, cl.mem_flags.READ_WRITE, size)
        self.device.buffers.count(buffer)
        return buffer

    def zeros(self, n: int, dtype: Any = None) -> cl.Buffer:
        """A buffer of n zeros."""
        buffer = self.empty(n, dtype)
        with _device_errors(self.device):
            cl.enqueue_fill_buffer(self.queue, buffer, np.zeros(1, np.uint8), 0, buffer.size)
        return buffer

    def _reserve(self, size: int) -> None:
        self.allocated += size
        self.device.require_memory(self.allocated, size)

    def download(self, buffer: cl.Buffer, n: int, dtype: Any = None) -> NDArray[Any]:
        """The first n values of a buffer, reals where no other type is given, once everything before is done."""
        array = np.empty(n, dtype or self.dtype)
        self.read(array, buffer)
        return array

    def settle(self, *buffers: cl.Buffer) -> None:
        """Bring buffers to the device now; NVIDIA's would come between two kernels, when the second is launched."""
        with _device_errors(self.device):
            cl.enqueue_migrate_mem_objects(self.queue, list(buffers))

    def write(self, buffer: cl.Buffer, values: NDArray[Any]) -> None:
        """Fill a buffer from an array."""
        with _device_errors(self.device):
            cl.enqueue_copy(self.queue, buffer, values)

    def read(self, array: NDArray[Any], buffer: cl.Buffer, first: int = 0) -> None:
        """Fill the array from a buffer, from its value `first` on, once everything before is done."""
        with _device_errors(self.device):
            cl.enqueue_copy(self.queue, array, buffer, src_offset=first * array.itemsize)

    def host_array(self, shape: tuple[int, ...], dtype: Any = None) -> NDArray[Any]:
        """An array that the device reads and fills by itself, while the host does something else."""
        dtype = np.dtype(dtype or self.dtype)
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.ALLOC_HOST_PTR
        with _device_errors(self.device):
            buffer = cl.Buffer(self.device.context, flags, math.prod(shape) * dtype.itemsize)
            access: Any = cl.map_flags.READ | cl.map_flags.WRITE
            array: NDArray[Any] = cl.enqueue_map_buffer(self.queue, buffer, access, 0, shape, dtype)[0]
        return array

    def start_write(self, buffer: cl.Buffer, values: NDArray[Any]) -> cl.Event:
        """Fill a buffer from an array, which must stay as it is until the event, to be kept, has come."""
        with _device_errors(self.device):
            return cl.enqueue_copy(self.queue, buffer, values, is_blocking=False)

    def start_read(self, array: NDArray[Any], buffer: cl.Buffer) -> cl.Event:
        """Fill the array from a buffer once everything before is done, which begins now; the event is to be kept."""
        with _device_errors(self.device):
            event = cl.enqueue_copy(self.queue, array, buffer, is_blocking=False)
            self.queue.flush()
            return event

    def wait(self, event: cl.Event) -> None:
        """Wait for an event."""
        with _device_errors(self.device):
            event.wait()

    def finish(self) -> None:
        """Wait for everything that was started."""
        with _device_errors(self.device):
            self.queue.finish()

    def vector4(self, *values: float) -> NDArray[Any]:
        """Four reals as one kernel argument."""
        kind = cl.cltypes.float4 if self.precision == "float32" else cl.cltypes.double4
        return np.array(tuple(values) + (0,) * (4 - len(values)), dtype=kind)[()]

    def int4(self, *values: int) -> NDArray[Any]:
        """Four integers as one kernel argument."""
        return np.array(tuple(values) + (0,) * (4 - len(values)), dtype=cl.cltypes.int4)[()]

    def launch(self, kernel: Kernel, shape: tuple[int, ...], group: tuple[int, ...], *args: Any) -> None:
        """Launch over `shape` work-items, padded to whole groups; a group is cut to what the kernel allows."""
        group = self._allowed(kernel, group)
        kernel_object = kernel.borrow()
        try:
            kernel_object.set_args(*args)
            self.events.append(self._enqueue(kernel, kernel_object, shape, group))
        finally:
            kernel.give_back(kernel_object)

    def prepare(self, kernel: Kernel, shape: tuple[int, ...], group: tuple[int, ...], *args: Any) -> PreparedLaunch:
        """As `launch`, to be called once or more later: setting arguments takes longer than a short kernel runs."""
        return PreparedLaunch(self, kernel, shape, self._allowed(kernel, group), args)

    def keep(
        self, file: str, name: str, shape: tuple[int, int], group: tuple[int, int], *args: Any, width: int = 1,
        pairs: float = 0.0, divisible: int = 1, **defines: int,
    ) -> KeptLaunch:  # fmt: skip
        """A launch with its arguments set for good, on a kernel object of its own.

        shape : work-items in the first two dimensions; the third is how many conformations are computed
        pairs, divisible : of KeptLaunch
        """
        kernel = self.kernel(file, name, width, **defines)
        group = min(group[0], self._most_items(kernel)), group[1]
        whole = _whole_groups(shape[0], group[0]), _whole_groups(shape[1], group[1])
        return KeptLaunch(kernel, whole, (*group, 1), args, pairs, divisible)

    def launch_kept(self, launches: Sequence[KeptLaunch], n_conformations: int, tell: Progress | None = None) -> None:
        """Launch one after the other for the first n_conformations; what is done between two may outlast a kernel.

        tell : called with the share of the pairs done. Then, and where a launch is long, each is waited for, in slabs.
        """
        if any(kept.pairs and (tell or kept.pairs * n_conformations > LONG_LAUNCH_PAIRS) for kept in launches):
            self._launch_slabs(launches, n_conformations, tell)
            return
        queue = self.queue
        with _device_errors(self.device):
            for kept in launches:
                shape = (*kept.shape, n_conformations)
                if self.profile:
                    self._note_first(kept.kernel)
                    self.events.append(cl.enqueue_nd_range_kernel(queue, kept.kernel_object, shape, kept.group))
                else:
                    cl.enqueue_nd_range_kernel(queue, kept.kernel_object, shape, kept.group)

    def _launch_slabs(self, launches: Sequence[KeptLaunch], n_conformations: int, tell: Progress | None) -> None:
        pairs, all_pairs = 0.0, sum(kept.pairs for kept in launches)
        for kept in launches:
            whole, done = kept.shape[0], 0
            slab = whole
            if kept.divisible and kept.pairs:
                share = min(1.0, FIRST_SLAB_PAIRS / (kept.pairs * n_conformations))
                slab = _whole_groups(int(whole * share), kept.group[0])
            while done < whole:
                count = min(slab, whole - done)
                start = time.perf_counter()
                self._note_first(kept.kernel)
                with _device_errors(self.device):
                    event = cl.enqueue_nd_range_kernel(
                        self.queue,
                        kept.kernel_object,
                        (count, kept.shape[1], n_conformations),
                        kept.group,
                        (done, 0, 0),
                    )
                    event.wait()
                if self.profile:
                    self.events.append(event)
                done += count
                seconds = max(time.perf_counter() - start, 1e-6)
                slab = _whole_groups(int(count * min(8.0, SLAB_SECONDS / seconds)), kept.group[0])
                if tell is not None and kept.pairs:
                    tell((pairs + kept.pairs * done / whole) / all_pairs)
            pairs += kept.pairs

    def begin_step(self, name: str) -> None:
        """Have what is launched from now on belong to a step of this name."""
        self.steps[name] = len(self.events)

    def step(self, name: str) -> slice:
        """The launches of a step."""
        first = self.steps[name]
        later = [start for start in self.steps.values() if start > first]
        return slice(first, min(later, default=len(self.events)))

    def _allowed(self, kernel: Kernel, group: tuple[int, ...]) -> tuple[int, ...]:
        """The group, cut to what the kernel may have."""
        return min(group[0], self._most_items(kernel)), *group[1:]

    def _enqueue(
        self, kernel: Kernel, kernel_object: cl.Kernel, shape: tuple[int, ...], group: tuple[int, ...], offset: int = 0
    ) -> cl.Event:
        shape = tuple(_whole_groups(n, g) for n, g in zip(shape, group, strict=True))
        start = (offset,) + (0,) * (len(shape) - 1) if offset else None
        self._note_first(kernel)
        with _device_errors(self.device):
            return cl.enqueue_nd_range_kernel(self.queue, kernel_object, shape, group, start)

    def submit(self) -> None:
        """See that the device begins with what was launched, for which a runtime may wait until it is asked for it."""
        with _device_errors(self.device):
            self.queue.flush()

    def _note_first(self, kernel: Kernel) -> None:
        """Note that the launch that comes next is the kernel's first on the device."""
        if not kernel.launched:
            kernel.launched = True
            self.firsts.add(len(self.events))

    @property
    def kernel_seconds(self) -> float:
        """What the kernels took, by the device's clock; not what lay between them."""
        return self.launched_seconds(slice(None))

    def launched_seconds(self, part: slice) -> float:
        """What the kernels of a part of the launches took, counted as `kernel_seconds` are."""
        self.finish()
        return float(sum(event.profile.end - event.profile.start for event in self.events[part])) * 1e-9

    @property
    def elapsed_seconds(self) -> float:
        """From the first kernel's start to the last one's end, by the device's clock, with all that lay between.

        What lies before a kernel's first launch does not count: then it is built, by some runtimes as late as that.
        """
        return self.elapsed(slice(None))

    def elapsed(self, part: slice) -> float:
        """Elapsed seconds of a part of the launches, counted as `elapsed_seconds` are."""
        self.finish()
        first, last, _ = part.indices(len(self.events))
        bounds = sorted({first, *(k for k in self.firsts if first < k < last), last})
        stretches = [self.events[start:stop] for start, stop in pairwise(bounds)]
        return float(sum(some[-1].profile.end - some[0].profile.start for some in stretches)) * 1e-9


def _whole_groups(n: int, group: int) -> int:
    return max(1, -(-n // group)) * group
