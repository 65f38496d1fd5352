"""Ways to compute a map: a table of variants and the host steps of each.

Host steps take a Queue and a MapProblem, make the kernels ready, and return a SlabMethod. It has the block of points to
which slabs are padded. It has a function that adds atoms first to last - 1 to a slab on the device.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ..common.variant import Variant, by_rule
from ..plan.tuning import RULES, Choice, remembered
from .bins import Bins
from .blocking import Blocking
from .map_slab import MapSlab
from .mesh import FarMesh, FarPart, Nodes
from .msm import Lattices
from .near import NearTables
from .problem import RUN, MapProblem

if TYPE_CHECKING:
    from ..opencl.device import Device
    from ..opencl.kernel import Kernel
    from ..opencl.queue import Queue

GROUP = (32, 4, 1)
MOST_CONSTANT_ATOMS = 4096  # as in the books; the device's constant memory may hold fewer

Add = Callable[["Queue", MapSlab, int, int], None]


@dataclass(frozen=True)
class SlabMethod:
    """Host steps of a variant for a slab.

    pad : points along x, y, z that divide the slab's
    add : adds atoms to the map of a slab
    atoms_a_point : that count for a point, about, where it wants all atoms of the problem at once; else None
    moved : the host steps of the same atoms at other positions, which take over what is ready; None where nothing is
    """

    pad: tuple[int, int, int]
    add: Add
    atoms_a_point: float | None = None
    moved: HostSteps | None = None


HostSteps = Callable[["Queue", MapProblem], SlabMethod]


@dataclass(frozen=True)
class MapVariant(Variant[HostSteps]):
    """A variant of maps.

    method : of `potmap`, a key of MAP_METHODS
    has_field : whether it computes the electric field, too
    """

    method: str = "direct"
    has_field: bool = False


def _kernel(queue: Queue, problem: MapProblem, algorithm: str, width: int = 1, **defines: int) -> Kernel:
    variant = VARIANTS[algorithm]
    return queue.kernel(variant.file, variant.kernel, width, **problem.switches, **defines)


def sequential(queue: Queue, problem: MapProblem) -> SlabMethod:
    """Three loops in one work-item."""
    kernel = _kernel(queue, problem, "sequential")

    def add(queue: Queue, slab: MapSlab, first: int, last: int) -> None:
        slice_ = queue.empty(slab.shape[0] * slab.shape[1])
        atoms = queue.hold(problem.atoms4[first:last])
        queue.launch(kernel, (1,), (1,), dict(slab.arguments(last - first), atoms=atoms, slice=slice_))

    return SlabMethod((1, 1, 1), add)


def scatter(queue: Queue, problem: MapProblem) -> SlabMethod:
    """A work-item an atom and slice adds to all its points, a run of atoms at a time."""
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
    """A work-item a point, atoms from global memory."""
    kernel = _kernel(queue, problem, "gather")

    def add(queue: Queue, slab: MapSlab, first: int, last: int) -> None:
        atoms = queue.hold(problem.atoms4[first:last])
        queue.launch(kernel, slab.shape, group, dict(slab.arguments(last - first), atoms=atoms))

    return SlabMethod((1, 1, 1), add)


def constant(queue: Queue, problem: MapProblem) -> SlabMethod:
    """Launch each slice and chunk of atoms; the chunk, with dz^2 in place of z, lies in constant memory."""
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
    """Whole runs of atoms, as many at a time as constant memory holds."""
    held = queue.device.largest_constant // (4 * queue.dtype.itemsize)
    step = max(RUN, min(MOST_CONSTANT_ATOMS, held) // RUN * RUN)
    return [(start, min(start + step, last)) for start in range(first, last, step)]


def rows(
    algorithm: str, points: int, grouped: bool, queue: Queue, problem: MapProblem, most: tuple[int, int, int] = GROUP
) -> SlabMethod:
    """Several points of a row for each work-item, atoms from constant memory.

    grouped : the kernel is built for its group, and the map padded to whole groups
    most : work-items of a group; along x as few as a row needs
    """
    group_x = min(most[0], 1 << (max(1, -(-problem.grid.shape[0] // points)) - 1).bit_length())
    group = (group_x, most[1], 1)
    defines = {"GROUP": group[0], "ROWS": group[1]} if grouped else {}
    kernel = _kernel(queue, problem, algorithm, POINTS=points, **defines)

    def add(queue: Queue, slab: MapSlab, first: int, last: int) -> None:
        items = (slab.shape[0] // points, *slab.shape[1:])
        for start, end in _constant_chunks(queue, first, last):
            atoms = queue.hold(problem.atoms4[start:end])
            queue.launch(kernel, items, group, dict(slab.arguments(end - start), atoms=atoms))

    return SlabMethod((points * group_x, group[1], 1) if grouped else (points, 1, 1), add)


def blocked(queue: Queue, problem: MapProblem, blocking: Blocking | None = None) -> SlabMethod:
    """A block of points in two dimensions for each work-item, vectors of points on CPUs, atoms in local memory."""
    blocking = blocking or _tuned(queue, problem, _blocking(queue, problem))
    kernel = _kernel(queue, problem, "blocked", blocking.width, UNROLL=blocking.unroll, RESTS=0, **blocking.defines)

    def add(queue: Queue, slab: MapSlab, first: int, last: int) -> None:
        atoms = queue.hold(problem.atoms4[first:last])
        arguments = dict(slab.arguments(last - first), atoms=atoms)
        queue.launch(kernel, blocking.items(slab.shape), blocking.group, arguments)

    return SlabMethod(blocking.pad, add)


def cutoff(queue: Queue, problem: MapProblem, kept: NearTables | None = None) -> SlabMethod:
    """Atoms in bins; each group of points walks the bins near it. kept : of other positions, if they serve"""
    blocking = _blocking(queue, problem)
    rounded = int(problem.precision == "float32")
    kernel = _kernel(queue, problem, "cutoff", blocking.width, RESTS=rounded, **blocking.defines)
    tables = kept if kept is not None and kept.grid.serves(problem) else NearTables(queue, problem, blocking.pad)
    bins = Bins.of(problem, tables.grid)
    starts, atoms, rests = queue.upload(bins.starts, np.int32), queue.upload(bins.atoms4), queue.upload(bins.rests4)

    def add(queue: Queue, slab: MapSlab, first: int, last: int) -> None:
        if len(bins.atoms4):
            queue.launch(
                kernel, blocking.items(slab.shape), blocking.group,
                dict(
                    slab.arguments(len(bins.atoms4)), **tables.arguments(queue, slab), lowest=queue.vector4(*bins.low),
                    highest=queue.vector4(*bins.high), starts=starts, atoms=atoms, rests=rests,
                ),
            )  # fmt: skip

    return SlabMethod(blocking.pad, add, bins.walked, partial(cutoff, kept=tables))


def msm(queue: Queue, problem: MapProblem) -> SlabMethod:
    """Compute the far part from lattices, each twice as coarse as the one before."""
    return _far_and_near(Lattices, queue, problem)


def mesh(queue: Queue, problem: MapProblem) -> SlabMethod:
    """Compute the far part from a mesh."""
    return _far_and_near(FarMesh, queue, problem)


def _far_and_near(
    make: Callable[[Queue, MapProblem], Nodes], queue: Queue, problem: MapProblem, kept: Nodes | None = None,
    near_steps: HostSteps = cutoff,
) -> SlabMethod:  # fmt: skip
    """Compute the far part from nodes, the near part as `cutoff` does.

    make : gives the nodes; kept : nodes for other positions, which may serve
    """
    ready = kept if kept is not None and kept.holds(problem.positions) else make(queue, problem)
    near = replace(ready.near, positions=problem.positions, box=problem.box)
    steps, far = near_steps(queue, near), None

    def add(queue: Queue, slab: MapSlab, first: int, last: int) -> None:
        nonlocal far
        steps.add(queue, replace(slab, problem=near), first, last)
        if far is None:
            queue.submit()  # a GPU is busy with that while the host prepares the far part
            far = FarPart(queue, problem, ready)
        far.add_to(queue, slab)

    return replace(steps, add=add, moved=partial(_far_and_near, make, kept=ready, near_steps=steps.moved or cutoff))


def _blocking(queue: Queue, problem: MapProblem) -> Blocking:
    device = queue.device
    return Blocking.of(
        device.kind,
        device.vendor,
        device.vector_width(queue.precision),
        queue.precision,
        problem.bare,
        problem.grid.shape,
    )


def _tuned(queue: Queue, problem: MapProblem, blocking: Blocking) -> Blocking:
    """Choose the blocking of `blocked`, or a better measured one; not if it would pad this map more."""
    tuned = tuned_choice(problem, queue.device).applied("blocked", blocking)
    return tuned if tuned.padded(problem.grid.shape) <= blocking.padded(problem.grid.shape) else blocking


def tuned_choice(problem: MapProblem, device: Device) -> Choice:
    """Return the choice that was measured to be best for a map like this; only plain potentials are measured."""
    if not problem.bare:
        return RULES
    return remembered("potmap", VARIANTS, device, problem.precision, problem.evaluations)


VARIANTS: dict[str, MapVariant] = {
    "sequential": MapVariant(
        "potmap/ladder/sequential.cl", "potmap_sequential", "the loops over slices, atoms and points, on one CPU core",
        sequential, cpu_only=True,
    ),
    "scatter": MapVariant(
        "potmap/ladder/scatter.cl", "potmap_scatter", "a work-item an atom and slice, additions to the points atomic",
        scatter,
    ),
    "gather": MapVariant(
        "potmap/ladder/gather.cl", "potmap_gather", "a work-item a point, atoms from global memory", gather,
        choices=by_rule, has_field=True,
    ),
    "constant": MapVariant(
        "potmap/ladder/constant.cl", "potmap_constant", "slice by slice, chunks of atoms in constant memory", constant
    ),
    "coarsened": MapVariant(
        "potmap/ladder/coarsened.cl", "potmap_coarsened", "four neighbouring points a work-item",
        partial(rows, "coarsened", 4, False), choices=by_rule,
    ),
    "shared": MapVariant(
        "potmap/ladder/shared.cl", "potmap_shared", "eight neighbouring points a work-item, totals in local memory",
        partial(rows, "shared", 8, True),
    ),
    "coalesced": MapVariant(
        "potmap/ladder/coalesced.cl", "potmap_coalesced", "eight points a work-item, a group's width apart",
        partial(rows, "coalesced", 8, True), choices=by_rule,
    ),
    "blocked": MapVariant(
        "potmap/blocked.cl", "potmap_blocked", "blocks of points in two dimensions, vectors on CPUs", blocked,
        choices=Blocking.choices, has_field=True,
    ),
    "cutoff": MapVariant(
        "potmap/ladder/cutoff.cl", "potmap_cutoff", "atoms in bins, only near ones", cutoff,
        approximates=True, method="cutoff", has_field=True,
    ),
    "msm": MapVariant(
        "potmap/ladder/msm_lattice.cl", "msm_lattice", "near atoms as `cutoff` does, the others by sums on lattices",
        msm, approximates=True, method="msm", has_field=True,
    ),
    "mesh": MapVariant(
        "potmap/ladder/cutoff.cl", "potmap_cutoff", "near atoms as `cutoff` does, the others by way of a mesh", mesh,
        approximates=True, method="mesh", has_field=True,
    ),
}  # fmt: skip
