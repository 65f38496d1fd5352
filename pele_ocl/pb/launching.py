"""Kernel launches over the nodes of grids, with arguments by name."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..opencl.interface import COLOUR_GRID
from .colours import Colours

if TYPE_CHECKING:
    from ..opencl.binding import BoundLaunch
    from ..opencl.memory import Buffer
    from ..opencl.queue import Queue

GROUP = (32, 4, 1)  # work-group size on GPUs
BLOCK = 4  # nodes per block along each axis, see cl/pb/spheres.clh
LIST_GROUP = 64  # work-group size for lists
# Programs that combine several files, because building fewer programs takes less time.
PROGRAMS = {
    **dict.fromkeys(("pb/probes.cl", "pb/near.cl", "pb/surface.cl"), "pb/molecule.cl"),
    **dict.fromkeys(("pb/smooth.cl", "pb/transfer.cl", "pb/coarsen.cl", "pb/tail.cl"), "pb/multigrid.cl"),
    **dict.fromkeys(("pb/outer.cl", "pb/weights.cl"), "pb/equation.cl"),
}


@dataclass(frozen=True, eq=False)
class Launch:
    """A sequence of launches. depth : size of the third dimension of all launches"""

    queue: Queue
    launches: tuple[BoundLaunch, ...]
    depth: int

    def __call__(self) -> None:
        """Run the launches."""
        self.queue.launch_bound(self.launches, self.depth)


def joined(launches: Iterable[Callable[[], None]]) -> list[Callable[[], None]]:
    """Merge successive launches of the same depth, to reduce the overhead on the host."""
    found: list[Callable[[], None]] = []
    for each in launches:
        last = found[-1] if found else None
        if isinstance(each, Launch) and isinstance(last, Launch) and last.depth == each.depth:
            found[-1] = replace(last, launches=(*last.launches, *each.launches))
        else:
            found.append(each)
    return found


@dataclass(eq=False)
class Launching:
    """Creates launches on a device. Wide numbers, `total` in kernels, are float64 if the device supports it.

    rows : number of problems, with grids of the same shape, that are computed together
    keeps : whether to keep the arrays of launches. Otherwise `let_go` releases them, because NVIDIA's runtime waits for
        all kernels when an array is freed
    """

    queue: Queue
    rows: int = 1
    keeps: bool = False
    _shared: dict[Hashable, Buffer] = field(default_factory=dict, init=False)
    _kept: list[BoundLaunch] = field(default_factory=list, init=False)

    @cached_property
    def wide(self) -> np.dtype[np.floating]:
        """NumPy type of wide numbers."""
        return np.dtype("float64" if self.queue.device.has_float64 else "float32")

    @cached_property
    def is_cpu(self) -> bool:
        """True on CPUs, where each work-item processes a plane of nodes."""
        return self.queue.device.kind == "CPU"

    @cached_property
    def macros(self) -> dict[str, int]:
        """Macros for kernels over nodes."""
        has_float64, is_alone = self.queue.device.has_float64, self.rows == 1 and not self.is_cpu
        return {"PLANES": int(self.is_cpu), "ALONE": int(is_alone), "DOUBLES": int(has_float64)}

    def prepare(
        self, file: str, name: str, shape: tuple[int, ...], group: tuple[int, ...], defines: dict[str, int],
        precision: str | None = None, width: int = 1, **values: Any,
    ) -> Launch:  # fmt: skip
        """Create a launch, which can be called repeatedly.

        file : that contains the kernel
        precision : of reals, by default the queue's; width : reals per vector
        values : arguments by parameter name
        """
        from ..opencl.building import get_kernel

        macros: dict[str, Any] = {**self.macros, **defines}
        program = PROGRAMS.get(file, file)
        kernel = get_kernel(self.queue.device, program, name, precision or self.queue.precision, width, **macros)
        (x, y, z), (across, along) = (*shape, 1, 1)[:3], (*group, 1)[:2]
        arguments = {key: packed(value) for key, value in values.items()}
        launch = self.queue.bind_kernel(kernel, (x, y), (across, along), arguments)
        if not self.is_cpu:
            self._kept.append(launch)
        return Launch(self.queue, (launch,), z)

    def let_go(self) -> None:
        """Release arrays that are only used by launches; call it when the device is idle."""
        if not self.keeps:
            self._kept.clear()
            if self.rows > 1:
                self._alone.let_go()

    def over_nodes(self, file: str, name: str, colours: Colours, defines: dict[str, int], **values: Any) -> Launch:
        """Create a launch over the nodes of one colour."""
        return self._over(file, name, _items(colours), defines, values)

    def groups_over(self, colours: Colours) -> int:
        """Count the work-groups of a launch over the nodes of one colour, on GPUs."""
        groups = [-(-n // group) for n, group in zip(_items(colours), GROUP, strict=True)]
        return self.rows * int(np.prod(groups))

    def over_all_nodes(self, file: str, name: str, colours: Colours, defines: dict[str, int], **values: Any) -> Launch:
        """Create a launch over all nodes of a grid."""
        return self._over(file, name, colours.shape, defines, values)

    def _over(
        self, file: str, name: str, shape: tuple[int, int, int], defines: dict[str, int], values: dict[str, Any]
    ) -> Launch:
        if self.is_cpu:
            return self.prepare(file, name, (1, 1, shape[2] * self.rows), (1, 1, 1), defines, **values)
        return self.prepare(file, name, (*shape[:2], shape[2] * self.rows), GROUP, defines, **values)

    def over_blocks(self, file: str, name: str, colours: Colours, defines: dict[str, int], **values: Any) -> Launch:
        """Create a launch over all nodes of the rows' grids, with one work-group per block."""
        return self.prepare(file, name, (self.rows * _blocks(colours) * BLOCK**3,), (BLOCK**3,), defines, **values)

    def over_whole_blocks(
        self, file: str, name: str, colours: Colours, defines: dict[str, int], **values: Any
    ) -> Launch:
        """Create a launch over the blocks of the rows' grids, with one work-item per block."""
        return self.prepare(file, name, (self.rows * _blocks(colours),), (1,), defines, **values)

    def over_list(self, file: str, name: str, count: int, defines: dict[str, int], **values: Any) -> Launch:
        """Create a launch over the elements of a list."""
        return self.prepare(file, name, (count,), (LIST_GROUP,), defines, **values)

    def over_lists(self, file: str, name: str, count: int, defines: dict[str, int], **values: Any) -> Launch:
        """Create a launch over one list per row. count : length of the longest list"""
        return self.prepare(file, name, (count, 1, self.rows), (LIST_GROUP,), defines, **values)

    @property
    def alone(self) -> Launching:
        """Launching for a single row."""
        # Not cached if it is self, because a reference cycle would delay the release of arrays.
        return self if self.rows == 1 else self._alone

    @cached_property
    def _alone(self) -> Launching:
        return Launching(self.queue, keeps=self.keeps)

    def shared(self, key: Hashable, make: Callable[[], Buffer]) -> Buffer:
        """Return a read-only buffer shared by launches; `make` uploads it on first use."""
        if key not in self._shared:
            self._shared[key] = make()
        return self._shared[key]

    def large(self, key: Hashable, make: Callable[[], Buffer]) -> Buffer:
        """Return a read-only buffer as `shared` does, cached only if arrays are kept."""
        return self.shared(key, make) if self.keeps else make()

    def vector(self, values: NDArray[np.floating]) -> Buffer:
        """Upload three numbers as one wide vector; cached."""
        return self.shared(tuple(values.tolist()), lambda: self.vectors(values[None]))

    def vectors(self, values: Any) -> Buffer:
        """Upload (n, 3) or (n, 4) numbers as wide vectors of four."""
        found = np.zeros((max(1, len(values)), 4))
        found[: len(values), : np.shape(values)[1]] = values
        return self.queue.send(found, self.wide)


def _items(colours: Colours) -> tuple[int, int, int]:
    """Return the work-items of a launch over the nodes of one colour on a GPU."""
    return colours.row, *colours.shape[1:]


def _blocks(colours: Colours) -> int:
    return int(np.prod([-(-n // BLOCK) for n in colours.shape]))


@dataclass(frozen=True, eq=False)
class NodeValues:
    """Values at nodes of grids on a device, stored row by row, without duplicate nodes.

    counts : number of nodes per row; nodes : (count, 3) i, j, k; values : (count,) wide numbers
    ranges : from ranges_of
    """

    counts: tuple[int, ...]
    nodes: Buffer
    values: Buffer
    ranges: Buffer

    @classmethod
    def of(cls, launching: Launching, nodes: NDArray[np.integer], values: NDArray[np.floating]) -> NodeValues:
        """Upload nodes (m, 3) and values (m,) of one grid."""
        return cls.of_rows(launching, [nodes], [values])

    @classmethod
    def of_rows(
        cls, launching: Launching, nodes: Sequence[NDArray[np.integer]], values: Sequence[NDArray[np.floating]]
    ) -> NodeValues:
        """Upload nodes (m, 3) and values (m,) of each grid."""
        queue, counts = launching.queue, tuple(map(len, nodes))
        on_device = queue.send(np.concatenate(nodes), np.int32), queue.send(np.concatenate(values), launching.wide)
        return cls(counts, *on_device, ranges_of(launching, counts))

    @property
    def count(self) -> int:
        """Number of nodes of all grids."""
        return sum(self.counts)


def ranges_of(launching: Launching, counts: Sequence[int]) -> Buffer:
    """Upload the start and length of each row in a concatenated list, as int4."""
    firsts = [0, *np.cumsum(counts).tolist()]
    return launching.queue.send([(*each, 0, 0) for each in zip(firsts, counts, strict=False)], np.int32)


def add_at(
    launching: Launching, colours: Colours, defines: dict[str, int], nodes: NDArray[np.integer],
    values: NDArray[np.floating], array: Buffer,
) -> None:  # fmt: skip
    """Add values, (m,), at nodes, (m, 3) i, j, k without duplicates, to an array of wide numbers.

    defines : macros of Coefficients
    """
    if len(nodes):
        given = NodeValues.of(launching, nodes, values)
        launching.over_list(
            "pb/weights.cl", "add_at", given.count, {**defines, "N_IONS": 0}, grid=colours, n_nodes=given.count,
            nodes=given.nodes, values=given.values, array=array,
        )()  # fmt: skip


def packed(value: object) -> object:
    """Convert grids to kernel structs; other arguments are returned unchanged."""
    return _packed_grid(value) if isinstance(value, Colours) else value


@lru_cache(maxsize=256)
def _packed_grid(grid: Colours) -> object:
    return COLOUR_GRID.pack("float32", **grid.fields)
