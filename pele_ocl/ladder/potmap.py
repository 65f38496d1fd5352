"""Ladder of textbook algorithms for potential maps, from three loops to eight points per work-item."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from ..potmap import VARIANTS, Potmap
from ..potmap.problem import RUN, MapProblem
from ..potmap.slabs import HostSteps, MapSlab, SlabMethod
from ..potmap.variants import MapVariant
from .rung import Rung

if TYPE_CHECKING:
    from ..opencl.kernel import Kernel
    from ..opencl.queue import Queue

GROUP = (32, 4, 1)
MOST_CONSTANT_ATOMS = 4096  # as in the textbooks; the device's constant memory may hold fewer


@dataclass(frozen=True)
class MapRung(Rung[HostSteps], MapVariant):
    """A rung of the ladder of maps."""


def _kernel(queue: Queue, problem: MapProblem, algorithm: str, **defines: int) -> Kernel:
    rung = POTMAP[algorithm]
    return queue.kernel(rung.file, rung.kernel, **problem.switches, **defines)


def sequential(queue: Queue, problem: MapProblem) -> SlabMethod:
    """Three loops in a single work-item."""
    kernel = _kernel(queue, problem, "sequential")

    def add(queue: Queue, slab: MapSlab, first: int, last: int) -> None:
        slice_ = queue.empty(slab.shape[0] * slab.shape[1])
        atoms = queue.upload_and_keep(problem.atoms4[first:last])
        queue.launch(kernel, (1,), (1,), dict(slab.arguments(last - first), atoms=atoms, slice=slice_))

    return SlabMethod((1, 1, 1), add)


def scatter(queue: Queue, problem: MapProblem) -> SlabMethod:
    """One work-item per atom and slice adds to all points of the slice; atoms are processed in runs."""
    native = queue.device.has_float_atomics(queue.precision)
    if queue.precision == "float64" and not native:
        queue.device.require_int64_atomics()
    switches = {**problem.switches, "NATIVE_ATOMICS": int(native)}
    scatter = queue.kernel("potmap/ladder/scatter.cl", "potmap_scatter", **switches)
    add_run = queue.kernel("potmap/ladder/scatter.cl", "add_run", **switches)

    def add(queue: Queue, slab: MapSlab, first: int, last: int) -> None:
        sums = queue.zeros(slab.n_points)
        atoms = queue.empty(4 * RUN)
        for start in range(first, last, RUN):
            count = min(RUN, last - start)
            queue.write(atoms, problem.atoms4[start : start + count])
            queue.launch(scatter, (count, slab.shape[2]), (8, 1), dict(slab.arguments(count), map=sums, atoms=atoms))
            queue.launch(add_run, (slab.n_points,), (64,), dict(n_points=slab.n_points, sums=sums, map=slab.map))

    return SlabMethod((1, 1, 1), add)


def gather(queue: Queue, problem: MapProblem, group: tuple[int, int, int] = GROUP) -> SlabMethod:
    """One work-item per point; atoms in global memory."""
    kernel = _kernel(queue, problem, "gather")

    def add(queue: Queue, slab: MapSlab, first: int, last: int) -> None:
        atoms = queue.upload_and_keep(problem.atoms4[first:last])
        queue.launch(kernel, slab.shape, group, dict(slab.arguments(last - first), atoms=atoms))

    return SlabMethod((1, 1, 1), add)


def constant(queue: Queue, problem: MapProblem) -> SlabMethod:
    """One launch per slice and chunk of atoms; the chunk is in constant memory, with dz^2 instead of z."""
    kernel = _kernel(queue, problem, "constant")

    def add(queue: Queue, slab: MapSlab, first: int, last: int) -> None:
        for start, end in _constant_chunks(queue, first, last):
            chunk = problem.atoms4[start:end].copy()
            atoms = queue.empty(chunk.size)
            arguments = dict(slab.arguments(end - start), atoms=atoms)
            for k, z in enumerate(slab.axes[2]):
                chunk[:, 2] = (z - problem.atoms4[start:end, 2]) ** 2
                queue.write(atoms, chunk)
                queue.launch(kernel, slab.shape[:2], (16, 16), dict(arguments, k=k))

    return SlabMethod((1, 1, 1), add)


def _constant_chunks(queue: Queue, first: int, last: int) -> list[tuple[int, int]]:
    """Chunks of whole runs of atoms that fit into constant memory."""
    held = queue.device.largest_constant // (4 * queue.dtype.itemsize)
    step = max(RUN, min(MOST_CONSTANT_ATOMS, held) // RUN * RUN)
    return [(start, min(start + step, last)) for start in range(first, last, step)]


def rows(
    algorithm: str, points: int, grouped: bool, queue: Queue, problem: MapProblem, most: tuple[int, int, int] = GROUP
) -> SlabMethod:
    """Several points of a row per work-item; atoms in constant memory.

    grouped : whether the kernel is built for its group size, and the map padded to whole groups
    most : largest work-group; along x it is as small as a row allows
    """
    group_x = min(most[0], 1 << (max(1, -(-problem.grid.shape[0] // points)) - 1).bit_length())
    group = (group_x, most[1], 1)
    defines = {"GROUP": group[0], "ROWS": group[1]} if grouped else {}
    kernel = _kernel(queue, problem, algorithm, POINTS=points, **defines)

    def add(queue: Queue, slab: MapSlab, first: int, last: int) -> None:
        items = (slab.shape[0] // points, *slab.shape[1:])
        for start, end in _constant_chunks(queue, first, last):
            atoms = queue.upload_and_keep(problem.atoms4[start:end])
            queue.launch(kernel, items, group, dict(slab.arguments(end - start), atoms=atoms))

    return SlabMethod((points * group_x, group[1], 1) if grouped else (points, 1, 1), add)


POTMAP: dict[str, MapRung] = {
    "sequential": MapRung(
        "potmap/ladder/sequential.cl", "potmap_sequential", "loops over slices, atoms and points, on one CPU core",
        sequential, cpu_only=True,
    ),
    "scatter": MapRung(
        "potmap/ladder/scatter.cl", "potmap_scatter", "one work-item per atom and slice, atomic additions",
        scatter,
    ),
    "gather": MapRung(
        "potmap/ladder/gather.cl", "potmap_gather", "one work-item per point, atoms from global memory", gather,
        has_field=True,
    ),
    "constant": MapRung(
        "potmap/ladder/constant.cl", "potmap_constant", "slice by slice, chunks of atoms in constant memory", constant
    ),
    "coarsened": MapRung(
        "potmap/ladder/coarsened.cl", "potmap_coarsened", "four neighbouring points per work-item",
        partial(rows, "coarsened", 4, False),
    ),
    "shared": MapRung(
        "potmap/ladder/shared.cl", "potmap_shared", "eight neighbouring points per work-item, totals in local memory",
        partial(rows, "shared", 8, True),
    ),
    "coalesced": MapRung(
        "potmap/ladder/coalesced.cl", "potmap_coalesced", "eight points per work-item, a group's width apart",
        partial(rows, "coalesced", 8, True),
    ),
    **{name: MapRung.of(variant) for name, variant in VARIANTS.items()},
}  # fmt: skip


class PotmapLadder(Potmap):
    """Potmap with any rung of the ladder, including the engine's variants."""

    variants = POTMAP
    _elsewhere = ""
