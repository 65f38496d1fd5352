"""The ways to compute a map: a table of variants and the host steps of each.

Host steps take a Run and a Task, make the kernels ready, and return Steps: the block of points to which slabs are
padded, and a function that adds atoms first to last - 1 to a slab on the device.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..tuning import RULES, Choice, remembered
from ..variant import Variant
from .bins import DEPTH, Bins
from .layout import Layout
from .task import RUN, Slab, Task

if TYPE_CHECKING:
    from ..opencl.device import Device
    from ..opencl.kernels import Run

GROUP = (32, 4, 1)
MOST_CONSTANT_ATOMS = 4096  # as in the books; the device's constant memory may hold fewer

Add = Callable[["Run", Slab, int, int], None]


@dataclass(frozen=True)
class Steps:
    """What a variant does with a slab.

    pad : points along x, y, z of which the slab's are multiples
    add : adds atoms to the map of a slab
    whole : whether it wants all atoms at once
    """

    pad: tuple[int, int, int]
    add: Add
    whole: bool = False


def _kernel(run: Run, task: Task, algorithm: str, width: int = 1, **defines: int) -> Any:
    variant = VARIANTS[algorithm]
    return run.kernel(variant.file, variant.kernel, width, **task.switches, **defines)


def sequential(run: Run, task: Task) -> Steps:
    """Three loops in one work-item."""
    kernel = _kernel(run, task, "sequential")

    def add(run: Run, slab: Slab, first: int, last: int) -> None:
        slice_ = run.empty(slab.shape[0] * slab.shape[1])
        atoms = run.upload(task.atoms4[first:last])
        run.launch(kernel, (1,), (1,), *slab.arguments(last - first), atoms, slice_)

    return Steps((1, 1, 1), add)


def scatter(run: Run, task: Task) -> Steps:
    """A work-item an atom and slice adds to all its points, a run of atoms at a time."""
    native = run.device.has_float_atomics(run.precision)
    if run.precision == "float64" and not native:
        run.device.require_int64_atomics()
    switches = {**task.switches, "NATIVE_ATOMICS": int(native)}
    scatter = run.kernel("potmap/ladder/scatter.cl", "potmap_scatter", **switches)
    add_run = run.kernel("potmap/ladder/scatter.cl", "add_run", **switches)

    def add(run: Run, slab: Slab, first: int, last: int) -> None:
        sums = run.zeros(slab.n_points)
        law, _, *arguments, map_ = slab.arguments(last - first)
        atoms = run.empty(4 * RUN)
        for start in range(first, last, RUN):
            count = min(RUN, last - start)
            run.write(atoms, task.atoms4[start : start + count])
            run.launch(scatter, (count, slab.shape[2]), (8, 1), law, np.int32(count), *arguments, sums, atoms)
            run.launch(add_run, (slab.n_points,), (64,), np.int32(slab.n_points), sums, map_)

    return Steps((1, 1, 1), add)


def gather(run: Run, task: Task) -> Steps:
    """A work-item a point, atoms from global memory."""
    kernel = _kernel(run, task, "gather")

    def add(run: Run, slab: Slab, first: int, last: int) -> None:
        atoms = run.upload(task.atoms4[first:last])
        run.launch(kernel, slab.shape, GROUP, *slab.arguments(last - first), atoms)

    return Steps((1, 1, 1), add)


def constant(run: Run, task: Task) -> Steps:
    """A launch for each slice and chunk of atoms; the chunk, with dz^2 in place of z, lies in constant memory."""
    kernel = _kernel(run, task, "constant")

    def add(run: Run, slab: Slab, first: int, last: int) -> None:
        for start, end in _constant_chunks(run, first, last):
            chunk = task.atoms4[start:end].copy()
            arguments, atoms = slab.arguments(end - start), run.empty(chunk.size)
            for k, z in enumerate(slab.axes[2]):
                chunk[:, 2] = (z - task.atoms4[start:end, 2]) ** 2
                run.write(atoms, chunk)
                run.launch(kernel, slab.shape[:2], (16, 16), *arguments, np.int32(k), atoms)

    return Steps((1, 1, 1), add)


def _constant_chunks(run: Run, first: int, last: int) -> list[tuple[int, int]]:
    """Whole runs of atoms, as many at a time as constant memory holds."""
    held = run.device.largest_constant // (4 * run.dtype.itemsize)
    step = max(RUN, min(MOST_CONSTANT_ATOMS, held) // RUN * RUN)
    return [(start, min(start + step, last)) for start in range(first, last, step)]


def rows(algorithm: str, points: int, grouped: bool, run: Run, task: Task) -> Steps:
    """Several points of a row for each work-item, atoms from constant memory.

    grouped : the kernel is built for its group, and the map padded to whole groups
    """
    group_x = min(32, 1 << (max(1, -(-task.grid.shape[0] // points)) - 1).bit_length())
    group = (group_x, GROUP[1], 1)
    defines = {"GROUP": group[0], "ROWS": group[1]} if grouped else {}
    kernel = _kernel(run, task, algorithm, POINTS=points, **defines)

    def add(run: Run, slab: Slab, first: int, last: int) -> None:
        items = (slab.shape[0] // points, *slab.shape[1:])
        for start, end in _constant_chunks(run, first, last):
            atoms = run.upload(task.atoms4[start:end])
            run.launch(kernel, items, group, *slab.arguments(end - start), atoms)

    return Steps((points * group_x, group[1], 1) if grouped else (points, 1, 1), add)


def blocked(run: Run, task: Task, layout: Layout | None = None) -> Steps:
    """A block of points in two dimensions for each work-item, vectors of points on CPUs, atoms in local memory."""
    layout = layout or _tuned(run, task, _layout(run, task))
    kernel = _kernel(run, task, "blocked", layout.width, UNROLL=layout.unroll, **layout.defines)

    def add(run: Run, slab: Slab, first: int, last: int) -> None:
        atoms = run.upload(task.atoms4[first:last])
        run.launch(kernel, layout.items(slab.shape), layout.group, *slab.arguments(last - first), atoms)

    return Steps(layout.pad, add)


def cutoff(run: Run, task: Task) -> Steps:
    """Atoms in bins; each group of points walks the bins near it."""
    layout = _layout(run, task)
    kernel = _kernel(run, task, "cutoff", layout.width, DEPTH=DEPTH, **layout.defines)

    def add(run: Run, slab: Slab, first: int, last: int) -> None:
        bins = Bins.of(slab, layout.pad)
        lists = [run.upload(list_, np.int32) for list_ in (bins.offsets, *bins.middles, bins.counts)]
        run.launch(
            kernel, layout.items(slab.shape), layout.group, *slab.arguments(len(bins.overflow)),
            run.vector4(*bins.corner, bins.edge), run.int4(*bins.shape), np.int32(len(bins.offsets)), *lists,
            run.upload(bins.atoms4), run.upload(bins.overflow),
        )  # fmt: skip

    return Steps(layout.pad, add, whole=True)


def _layout(run: Run, task: Task) -> Layout:
    device = run.device
    return Layout.of(
        device.kind, device.vendor, device.vector_width(run.precision), run.precision, task.bare, task.grid.shape
    )


def _tuned(run: Run, task: Task, layout: Layout) -> Layout:
    """The layout of `blocked`, or what was measured to be better; not where that would pad this map more."""
    tuned = tuned_choice(task, run.device).applied("blocked", layout)
    return tuned if tuned.padded(task.grid.shape) <= layout.padded(task.grid.shape) else layout


def tuned_choice(task: Task, device: Device) -> Choice:
    """What was measured to be best for a map like this; only plain potentials are measured."""
    if not task.bare:
        return RULES
    return remembered("potmap", device, task.precision, task.evaluations)


VARIANTS = {
    "sequential": Variant(
        "potmap/ladder/sequential.cl", "potmap_sequential", "the loops over slices, atoms and points, on one CPU core",
        sequential,
    ),
    "scatter": Variant(
        "potmap/ladder/scatter.cl", "potmap_scatter", "a work-item an atom and slice, additions to the points atomic",
        scatter,
    ),
    "gather": Variant(
        "potmap/ladder/gather.cl", "potmap_gather", "a work-item a point, atoms from global memory", gather
    ),
    "constant": Variant(
        "potmap/ladder/constant.cl", "potmap_constant", "slice by slice, chunks of atoms in constant memory", constant
    ),
    "coarsened": Variant(
        "potmap/ladder/coarsened.cl", "potmap_coarsened", "four neighbouring points a work-item",
        partial(rows, "coarsened", 4, False),
    ),
    "shared": Variant(
        "potmap/ladder/shared.cl", "potmap_shared", "eight neighbouring points a work-item, totals in local memory",
        partial(rows, "shared", 8, True),
    ),
    "coalesced": Variant(
        "potmap/ladder/coalesced.cl", "potmap_coalesced", "eight points a work-item, a group's width apart",
        partial(rows, "coalesced", 8, True),
    ),
    "blocked": Variant(
        "potmap/blocked.cl", "potmap_blocked", "blocks of points in two dimensions, vectors on CPUs", blocked
    ),
    "cutoff": Variant(
        "potmap/ladder/cutoff.cl", "potmap_cutoff", "atoms in bins, only those within the cutoff", cutoff
    ),
}  # fmt: skip

# Those that compute the field, too.
FIELD_VARIANTS = ("gather", "blocked", "cutoff")


def choose_variant(method: str) -> str:
    """The variant that `auto` stands for."""
    return "cutoff" if method == "cutoff" else "blocked"
