"""Queues of a device: kernels, launches, and the time they take."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pyopencl as cl
from numpy.typing import ArrayLike, DTypeLike, NDArray

from ..common.variant import Progress
from .binding import LONG_LAUNCH_PAIRS, BoundLaunch, set_arguments, whole_groups
from .building import get_kernel
from .device import device_errors, refusal
from .kernel import Arguments, Kernel
from .memory import Buffer, CommandQueue
from .transfers import Event, Transfers

# Launches with progress asked for, or longer than displays bear, are cut so that each takes about this long.
SLAB_SECONDS = 0.5
FIRST_SLAB_PAIRS = 2e7


def seconds_of(event: Event) -> float:
    """Seconds that a command ran. Its queue must take times."""
    return float(event.profile.end - event.profile.start) * 1e-9


def elapsed_seconds(events: Sequence[Event], firsts: set[int], part: slice) -> float:
    """Seconds from the start of a part's first command to the end of its last, with all between.

    firsts : indices of the events of kernels that ran for the first time; the time before them does not count, because
        some runtimes build a kernel as late as that
    """
    first, last, _ = part.indices(len(events))
    bounds = sorted({first, *(k for k in firsts if first < k < last), last})
    stretches = [events[start:stop] for start, stop in pairwise(bounds)]
    return float(sum(some[-1].profile.end - some[0].profile.start for some in stretches)) * 1e-9


@dataclass(eq=False)
class Queue(Transfers):
    """Queue of a device: moves arrays, launches kernels in order, remembers how long they took.

    A queue belongs to one thread. A device may have several at work at once, in threads or in callbacks. All that a
    queue starts waits in one command queue of OpenCL, which other queues with this `profile` use, too. Finish a queue
    before its buffers go to one with the other `profile`.

    profile : whether times are wanted; launches are dearer then
    held : buffers that live as long as the queue
    events : of the launches, in order; firsts : indices of launches that were a kernel's first on the device
    steps : index of the first launch of each step that was begun, by name
    posted : events of writes that may be under way; one that is dropped before it has come makes the host wait
    """

    profile: bool = True
    own_command_queue: CommandQueue | None = None
    held: list[Buffer] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    firsts: set[int] = field(default_factory=set)
    steps: dict[str, int] = field(default_factory=dict)
    allocated: int = 0
    posted: deque[Event] = field(default_factory=deque)

    def anew(self, profile: bool) -> Queue:
        """Make another queue of the device, with or without times."""
        return Queue(self.device, self.precision, profile=profile)

    @contextmanager
    def beside(self) -> Iterator[Queue]:
        """Lend a queue without times that nobody else uses; what waits in it runs beside what waits in others."""
        spare = self.device.spare
        try:
            own = spare.pop()
        except IndexError:
            with device_errors(self.device):
                own = cl.CommandQueue(self.device.context)
            self.device.further.append(own)
        try:
            yield Queue(self.device, self.precision, profile=False, own_command_queue=own)
        finally:
            spare.append(own)

    def hold(self, values: ArrayLike, dtype: DTypeLike | None = None) -> Buffer:
        """Upload values for launches of this queue alone, with which the buffer goes.

        One that is given up before makes the host wait: to free memory, NVIDIA's runtime lets all kernels end.
        """
        self.held.append(self.upload(values, dtype))
        return self.held[-1]

    def post(self, buffer: Buffer, values: NDArray[Any], first: int = 0) -> None:
        """Start to fill a buffer from an array, from its value `first` on; nobody else may write to the array."""
        while self.posted and self.has_come(self.posted[0]):
            self.posted.popleft()
        self.posted.append(self.start_write(buffer, values, first))

    def kernel(self, file: str, name: str, width: int = 1, **defines: int) -> Kernel:
        """Get a kernel in the queue's precision."""
        return get_kernel(self.device, file, name, self.precision, width, self.portable, False, **defines)

    def launch(
        self, kernel: Kernel, shape: tuple[int, ...], group: tuple[int, ...], arguments: Arguments,
        *, offset: tuple[int, ...] | None = None,
    ) -> None:  # fmt: skip
        """Launch over `shape` work-items, padded to whole groups; a group is cut to what the kernel allows.

        arguments : by the names of the kernel's parameters
        offset : work-items that are left out before the first one, in each dimension
        """
        group = self._allowed(kernel, group)
        kernel_object = kernel.borrow()
        try:
            set_arguments(self.device, kernel_object, kernel.signature.arguments(arguments))
            event = self._enqueue(kernel, kernel_object, shape, group, offset)
            if self.profile:
                self.events.append(event)
        finally:
            kernel.give_back(kernel_object)

    def bind(
        self, file: str, name: str, shape: tuple[int, int], group: tuple[int, int], arguments: Arguments, *,
        width: int = 1, cost: float = 0.0, divisible: int = 1, **defines: int,
    ) -> BoundLaunch:  # fmt: skip
        """Set the arguments of a launch for good, on a kernel object of its own; as in Binder."""
        kernel = self.kernel(file, name, width, **defines)
        return self.bind_kernel(kernel, shape, group, arguments, cost=cost, divisible=divisible)

    def bind_kernel(
        self, kernel: Kernel, shape: tuple[int, int], group: tuple[int, int], arguments: Arguments, *,
        cost: float = 0.0, divisible: int = 1,
    ) -> BoundLaunch:  # fmt: skip
        """Bind a kernel that is built already."""
        args = kernel.signature.arguments(arguments)
        return BoundLaunch(self.device, kernel, *self._fitted(kernel, shape, group), args, cost, divisible)

    def launch_bound(
        self, launches: Sequence[BoundLaunch], n_conformations: int, tell: Progress | None = None, first: int = 0
    ) -> None:
        """Launch one after another for n_conformations from conformation `first` on.

        The loop is short because a kernel may be over before the next one is launched.

        tell : called with the fraction of the pairs done. Then, and where a launch is long, each is waited for, in
            slabs, which begin with the first conformation
        """
        most_cost = max([launch.cost for launch in launches], default=0.0) * n_conformations
        if most_cost and not first and (tell or most_cost > LONG_LAUNCH_PAIRS):
            self._launch_slabs(launches, n_conformations, tell)
            return
        command_queue = self.command_queue
        with device_errors(self.device):
            for launch in launches:
                shape = (*launch.shape, n_conformations)
                offset = (launch.offset, 0, first) if first or launch.offset else None
                if self.profile:
                    self._record_first(launch.kernel)
                    self.events.append(
                        cl.enqueue_nd_range_kernel(command_queue, launch.kernel_object, shape, launch.group, offset)
                    )
                else:
                    cl.enqueue_nd_range_kernel(command_queue, launch.kernel_object, shape, launch.group, offset)

    def through(
        self, source: Buffer, values: NDArray[Any], launches: Sequence[BoundLaunch], target: Buffer, array: NDArray[Any]
    ) -> tuple[Event, Event]:
        """Start to write values, launch for as many conformations as they have rows, and read an array.

        This is the shortest way of `start_write`, `launch_bound` and `start_read`, for launches that are not cut.
        """
        command_queue, count = self.command_queue, len(values)
        try:
            written = cl.enqueue_copy(command_queue, source, values, is_blocking=False)
            for launch in launches:
                offset = (launch.offset, 0, 0) if launch.offset else None
                cl.enqueue_nd_range_kernel(
                    command_queue, launch.kernel_object, (*launch.shape, count), launch.group, offset
                )
            read = cl.enqueue_copy(command_queue, array, target, is_blocking=False)
            command_queue.flush()
        except cl.Error as error:
            raise refusal(self.device, error) from error
        return written, read

    def _launch_slabs(self, launches: Sequence[BoundLaunch], n_conformations: int, tell: Progress | None) -> None:
        done, all_costs = 0.0, sum(launch.cost for launch in launches)
        for launch in launches:
            for share in self._slabs_of(launch, n_conformations):
                if tell is not None and launch.cost:
                    tell((done + launch.cost * share) / all_costs)
            done += launch.cost

    def _slabs_of(self, launch: BoundLaunch, n_conformations: int) -> Iterator[float]:
        """Launch slabs of the first dimension, wait for each, and give the fraction done."""
        whole, done = launch.shape[0], 0
        slab = whole
        if launch.divisible and launch.cost:
            share = min(1.0, FIRST_SLAB_PAIRS / (launch.cost * n_conformations))
            slab = whole_groups(int(whole * share), launch.group[0])
        while done < whole:
            count = min(slab, whole - done)
            shape = count, launch.shape[1], n_conformations
            start = time.perf_counter()
            self._record_first(launch.kernel)
            with device_errors(self.device):
                offset = launch.offset + done, 0, 0
                event = cl.enqueue_nd_range_kernel(
                    self.command_queue, launch.kernel_object, shape, launch.group, offset
                )
                event.wait()
            if self.profile:
                self.events.append(event)
            done += count
            seconds = max(time.perf_counter() - start, 1e-6)
            slab = whole_groups(int(count * min(8.0, SLAB_SECONDS / seconds)), launch.group[0])
            yield done / whole

    def begin_step(self, name: str) -> None:
        """Let the launches from now on belong to a step of this name."""
        self.steps[name] = len(self.events)

    def step(self, name: str) -> slice:
        """Launches of a step."""
        first = self.steps[name]
        later = [start for start in self.steps.values() if start > first]
        return slice(first, min(later, default=len(self.events)))

    def _allowed(self, kernel: Kernel, group: tuple[int, ...]) -> tuple[int, ...]:
        """Cut a group to what the kernel may have."""
        return min(group[0], self._most_items(kernel)), *group[1:]

    def _enqueue(
        self, kernel: Kernel, kernel_object: cl.Kernel, shape: tuple[int, ...], group: tuple[int, ...],
        offset: tuple[int, ...] | None = None,
    ) -> Event:  # fmt: skip
        shape = tuple(whole_groups(n, g) for n, g in zip(shape, group, strict=True))
        self._record_first(kernel)
        with device_errors(self.device):
            return cl.enqueue_nd_range_kernel(self.command_queue, kernel_object, shape, group, offset)

    def submit(self) -> None:
        """Make the device begin with the launches; some runtimes wait until they are asked for results."""
        with device_errors(self.device):
            self.command_queue.flush()

    def _record_first(self, kernel: Kernel) -> None:
        """Record that the launch that comes next is the kernel's first on the device."""
        if not kernel.launched:
            kernel.launched = True
            self.firsts.add(len(self.events))

    @property
    def kernel_seconds(self) -> float:
        """Seconds that the kernels ran, by the device's clock, without the time between them."""
        return self.launched_seconds(slice(None))

    def launched_seconds(self, part: slice) -> float:
        """Seconds that the kernels of a part of the launches ran, without the time between them."""
        self.finish()
        return sum(map(seconds_of, self.events[part]), 0.0)

    @property
    def elapsed_seconds(self) -> float:
        """Seconds from the first kernel's start to the last one's end, by the device's clock.

        The time before a kernel's first launch on the device does not count.
        """
        return self.elapsed(slice(None))

    def elapsed(self, part: slice) -> float:
        """Elapsed seconds of a part of the launches, counted as `elapsed_seconds` are."""
        self.finish()
        return elapsed_seconds(self.events, self.firsts, part)
