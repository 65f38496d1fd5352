"""Division of a map into slabs of slices and chunks of atoms, computed by one thread per device.

The division does not affect the bits of the result, as each point adds whole runs of atoms in order.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..atoms import Floats
from ..common.errors import InputError
from ..common.variant import Progress
from .problem import RUN, MapProblem

if TYPE_CHECKING:
    from ..opencl.device import Device
    from ..opencl.memory import Buffer, ResultMemory, SpareBuffers
    from ..opencl.queue import Queue


# Target time of a launch, so that the work can be interrupted and reports progress.
LAUNCH_SECONDS = 0.5
MOST_POINTS = 1 << 28  # per slab on a device, including padding and field
MEMORY_SHARE = 4  # a slab may use 1/4 of a device's memory
AT_ONCE = 1 << 20  # values per download, including padding, to be copied while in cache
MOST_LEFT = 1 << 28  # maximum bytes of unused scratch buffers on a device
FEW_MORE = 1.25  # maximum size of a stored buffer, relative to the size used
MOST_VALUES = 2**31 - 1  # per slab, because kernels use 32-bit indices


class Scratch:
    """Uninitialized buffers by name, reused for later steps and frames; a device executes launches in order."""

    def __init__(self) -> None:
        self._buffers: dict[str, Buffer] = {}
        self._wanted: dict[str, int] = {}
        self._take: Callable[[str], Buffer | None] = lambda name: None

    @classmethod
    def kept(cls, device: Device, kind: str) -> Scratch:
        """Create a scratch that reuses the buffers of an earlier one of this kind on the device.

        Commands that use such buffers must be in the device's queue with profiling.
        """
        scratch, spare = cls(), device.spare_buffers
        # One by one, so that the device counts the others as unused and can free them.
        scratch._take = partial(spare.take, kind)
        weakref.finalize(scratch, _leave, spare, kind, scratch._buffers, scratch._wanted).atexit = False
        return scratch

    def __call__(self, queue: Queue, name: str, n: int, dtype: DTypeLike | None = None) -> Buffer:
        """Return a buffer of at least n numbers, by default reals; values from earlier uses of the name are lost."""
        kind = np.dtype(dtype or queue.dtype)
        size = max(1, n) * kind.itemsize
        found = self._buffers.pop(name, None)
        if found is None and (found := self._take(name)) is not None:
            found.counted = queue.device.buffers.count(found, found.size)
        if found is None or found.size < size:
            found = None  # frees it before the larger one is created
            found = queue.empty(n, kind)
        found.dtype = kind
        self._buffers[name], self._wanted[name] = found, max(size, self._wanted.get(name, 0))
        return found

    def zeros(self, queue: Queue, name: str, n: int, dtype: DTypeLike | None = None) -> Buffer:
        """Return a buffer filled with zeros."""
        buffer = self(queue, name, n, dtype)
        queue.clear(buffer, size=n * buffer.dtype.itemsize)
        return buffer

    def posted(self, queue: Queue, name: str, values: NDArray[Any], dtype: DTypeLike | None = None) -> Buffer:
        """Return a buffer to which values are being written; their array must not be modified."""
        array = np.ascontiguousarray(values, dtype or queue.dtype)
        buffer = self(queue, name, array.size, array.dtype)
        if array.size:
            queue.enqueue_write(buffer, array)
        return buffer


def _leave(spare: SpareBuffers, kind: str, buffers: dict[str, Buffer], wanted: dict[str, int]) -> None:
    """Store the buffers of a scratch for reuse, except those that are much larger than needed."""
    spare.leave(kind, {name: each for name, each in buffers.items() if each.size <= FEW_MORE * wanted[name]}, MOST_LEFT)


@dataclass(frozen=True, eq=False)
class MapSlab:
    """Slices `first` to `last` - 1 of a map on a device, padded to whole blocks of points.

    shape : (nx, ny, nz) with padding
    axes : coordinates of the points along x, y, z, as on the device
    buffers : the same on the device; map : buffer (components, nz, ny, nx), initially 0
    scratch : that contains the map
    """

    problem: MapProblem
    first: int
    last: int
    shape: tuple[int, int, int]
    axes: tuple[NDArray[np.floating], ...]
    buffers: tuple[Buffer, ...]
    map: Buffer
    scratch: Scratch

    @classmethod
    def on(
        cls, queue: Queue, problem: MapProblem, first: int, last: int, pad: tuple[int, int, int],
        scratch: Scratch | None = None,
    ) -> MapSlab:  # fmt: skip
        """pad : points per block along x, y, z; scratch : for the memory of the map, by default a new one

        Raises InputError if a single block of slices has too many points.
        """
        nx, ny, nz = (-(-n // p) * p for n, p in zip((*problem.grid.shape[:2], last - first), pad, strict=True))
        if problem.components * nx * ny * nz > MOST_VALUES:
            slices = " x ".join(f"{n:,}" for n in problem.grid.shape[:2])
            raise InputError(f"slices of {slices} points are too large; choose a larger spacing")
        axes = tuple(problem.axis(d, first if d == 2 else 0, n) for d, n in enumerate((nx, ny, nz)))
        buffers = tuple(queue.table(axis) for axis in axes)
        scratch = scratch or Scratch()
        values = scratch.zeros(queue, "map", problem.components * nx * ny * nz)
        return cls(problem, first, last, (nx, ny, nz), axes, buffers, values, scratch)

    @property
    def n_points(self) -> int:
        """Number of points, including padding."""
        return self.shape[0] * self.shape[1] * self.shape[2]

    @property
    def n_bytes(self) -> int:
        """Bytes of the map; its buffer may be larger."""
        return self.problem.components * self.n_points * self.map.dtype.itemsize

    def rests(self, queue: Queue) -> dict[str, Buffer]:
        """Upload the rounding errors of the points' coordinates along x, y, z."""
        firsts = (0, 0, self.first)
        names = ("rest_x", "rest_y", "rest_z")
        return {name: queue.table(self.problem.axis_rests(d, firsts[d], self.shape[d])) for d, name in enumerate(names)}

    def arguments(self, n_atoms: int) -> dict[str, Any]:
        """Return the kernels' MAP_PARAMETERS."""
        (nx, ny, nz), (x, y, z) = self.shape, self.buffers
        return dict(law=self.problem.law, n_atoms=n_atoms, nx=nx, ny=ny, nz=nz, x=x, y=y, z=z, map=self.map)

    def download(self, queue: Queue, values: NDArray[np.floating]) -> None:
        """Read values (components, slices, ny, nx), without padding, each component in C order."""
        from ..opencl.queue import read_without_padding

        nx, ny, _ = self.shape
        is_whole = (ny, nx) == values.shape[2:] and (queue.device.kind == "CPU" or queue.reaches(values))
        for component, part in enumerate(values):
            start = component * self.n_points
            if is_whole:
                queue.read(part, self.map, start)
            else:
                read_without_padding(queue, part, self.map, start, (ny, nx), AT_ONCE)

    def squares(self, queue: Queue) -> Callable[[], Floats]:
        """Launch the sums of the squared potentials, and of the field's squared components.

        Returns a function that waits for the sums, (components, slices).
        """
        (nx, ny), components = self.problem.grid.shape[:2], self.problem.components
        n_slices = self.last - self.first
        scratch, n_sums = self.scratch, components * n_slices * ny
        kernel = queue.kernel("potmap/squares.cl", "row_squares", queue.device.vector_width(queue.precision))
        pitches = dict(zip(("pitch_x", "pitch_y", "pitch_z"), self.shape, strict=True))
        queue.launch(
            kernel, (ny, n_slices, components), (8, 1, 1),
            dict(n_points=nx, n_rows=ny, map=self.map, sums=scratch(queue, "squares", n_sums), **pitches),
        )  # fmt: skip

        def totals() -> Floats:
            # Refers to the scratch, because another one may reuse its buffers once it is deleted.
            rows = queue.download(scratch(queue, "squares", n_sums), n_sums).reshape(components, n_slices, ny)
            found: Floats = rows.sum(axis=2, dtype=np.float64)
            return found

        return totals


Add = Callable[["Queue", MapSlab, int, int], None]


@dataclass(frozen=True)
class SlabMethod:
    """Host functions of a variant.

    pad : slabs are padded to multiples of these numbers of points along x, y, z
    add : adds atoms to the map of a slab
    atoms_a_point : estimated number of atoms per point, for methods that need all atoms together; else None
    moved : the host steps for the same atoms at other positions, which reuse tables; None if there are none
    """

    pad: tuple[int, int, int]
    add: Add
    atoms_a_point: float | None = None
    moved: HostSteps | None = None


HostSteps = Callable[["Queue", MapProblem], SlabMethod]


def first_evals(device: Device) -> float:
    """Return the evaluations of the first launch; on a GPU, with 1 to 20 per clock and unit, it takes 0.1 to 1.5 s."""
    return 1.5 * device.compute_units * device.clock if device.kind == "GPU" else 3e8


def evaluations_per_second(device: Device) -> float:
    """Estimate the speed of the direct sum.

    4 evaluations per clock and unit of a GPU, 2.2 per clock and core of a CPU with vectors of eight.
    """
    return (4.0 if device.kind == "GPU" else 2.2) * device.compute_units * device.clock


class RemainingSlabs:
    """Slices of a problem that remain to be computed, and their values; shared by threads.

    values : (components, nz, ny, nx); seconds : final kernel time of the slowest device
    squares : (components, nz) sums of squares of each slice, for approximate variants
    meanwhile : function that the first worker calls while its device computes

    Each worker begins with an equal part of the slices, so that equal devices finish at the same time. A worker that is
    done takes half of the remaining slices of the slowest one.
    """

    def __init__(
        self, problem: MapProblem, progress: Progress | None, memory: ResultMemory, workers: int = 1,
        meanwhile: Callable[[], object] | None = None,
    ) -> None:  # fmt: skip
        """memory : for the values"""
        self.problem, self.progress, self._meanwhile = problem, progress, meanwhile
        shape = problem.components, *problem.grid.shape[::-1]
        self.values = memory.array(shape, problem.precision)
        self.squares = np.zeros((problem.components, problem.grid.shape[2]))
        self.stopped, self.seconds = False, 0.0
        self._making: list[Future[None]] = []
        self._lock = threading.Lock()
        self._done = 0.0
        bounds = [problem.grid.shape[2] * worker // workers for worker in range(workers + 1)]
        self._left = [range(*pair) for pair in pairwise(bounds)]

    def take(self, worker: int, depth: int, block: int = 1) -> tuple[int, int] | None:
        """Return the next slices for a worker, as (first, last + 1); None if there are none.

        Returns at most `depth` slices, in whole blocks. The remaining slices are divided into equal parts, because a
        short last launch would not use the whole device.
        """
        with self._lock:
            if not self._left[worker]:
                slowest = max(range(len(self._left)), key=lambda other: len(self._left[other]))
                rest = self._left[slowest]
                middle = len(rest) // 2
                self._left[slowest], self._left[worker] = rest[:middle], rest[middle:]
            own = self._left[worker]
            parts = max(1, -(-len(own) // depth))
            count = -(-len(own) // (parts * block)) * block
            slices, self._left[worker] = own[:count], own[count:]
        return (slices.start, slices.stop) if slices and not self.stopped else None

    def start(self) -> None:
        """Start allocating the memory of the values in threads, unless it was used before."""
        from ..opencl.memory import is_used
        from ..opencl.queue import start_making

        if not is_used(self.values):
            self._making = start_making(self.values)

    def slices(self, first: int, last: int) -> NDArray[np.floating]:
        """Return the array (components, slices, ny, nx) of some slices, to be written to."""
        for part in self._making:
            part.result()
        return self.values[:, first:last]

    @property
    def sums_of_squares(self) -> tuple[float, ...]:
        """Sum of the squared potentials and, if computed, of the squared field."""
        squares = self.squares.sum(axis=1)
        parts = (squares[:1], squares[1:]) if self.problem.field else (squares,)
        return tuple(float(part.sum()) for part in parts)

    def do_meanwhile(self, launch: Queue) -> None:
        """Call `meanwhile`, once, while a device computes."""
        with self._lock:
            work, self._meanwhile = self._meanwhile, None
        if work is not None:
            launch.submit()
            work()

    def note(self, slices: int, n_atoms: int) -> None:
        """Report that atoms have been added to slices."""
        with self._lock:
            self._done += slices / self.problem.grid.shape[2] * (n_atoms / self.problem.n_atoms)
            if self.progress is not None:
                self.progress(min(self._done, 1.0))


def slab_depth(device: Device, problem: MapProblem, evals: float, method: SlabMethod) -> int:
    """Return the number of slices of the next slab, in whole blocks, limited by launch time and memory."""
    pad, atoms_a_point = method.pad, method.atoms_a_point or problem.n_atoms
    nx, ny = (-(-n // p) * p for n, p in zip(problem.grid.shape[:2], pad[:2], strict=True))
    largest = min(device.largest_buffer, device.memory // MEMORY_SHARE) // np.dtype(problem.precision).itemsize
    points = min(evals / atoms_a_point, largest / problem.components, MOST_POINTS / problem.components)
    return max(1, int(points / (nx * ny)) // pad[2]) * pad[2]


def atoms_a_launch(n_points: int, evals: float) -> int:
    """Return the atoms per launch of direct sums, in whole runs."""
    return max(1, int(evals / n_points) // RUN) * RUN
