"""Variants of map computations and their host code.

Host functions take a Queue and a MapProblem, prepare the kernels, and return a SlabMethod: the block size to which
slabs are padded, and a function that adds a range of atoms to a slab on the device. Textbook variants are in
pele_ocl/ladder/potmap.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from ..common.variant import Variant
from ..plan.tuning import RULES, Choice, remembered
from .bins import Bins, NearTables
from .blocking import Blocking
from .mesh import FarMesh, FarPart, Nodes
from .msm import Lattices
from .problem import MapProblem
from .slabs import HostSteps, MapSlab, SlabMethod
from .sorting import DeviceAtoms

if TYPE_CHECKING:
    from ..opencl.device import Device
    from ..opencl.queue import Queue


@dataclass(frozen=True)
class MapVariant(Variant[HostSteps]):
    """A variant of map computations.

    method : of `potmap`, a key of MAP_METHODS
    has_field : whether it supports the electric field
    """

    method: str = "direct"
    has_field: bool = False


def blocked(queue: Queue, problem: MapProblem, blocking: Blocking | None = None) -> SlabMethod:
    """Two-dimensional blocks of points per work-item, vectors of points on CPUs, atoms in local memory."""
    blocking = blocking or _tuned(queue, problem, _blocking(queue, problem))
    kernel = queue.kernel(
        "potmap/blocked.cl", "potmap_blocked", blocking.width, **problem.switches, UNROLL=blocking.unroll, RESTS=0,
        **blocking.defines,
    )  # fmt: skip

    def add(queue: Queue, slab: MapSlab, first: int, last: int) -> None:
        atoms = queue.upload_and_keep(problem.atoms4[first:last])
        arguments = dict(slab.arguments(last - first), atoms=atoms)
        queue.launch(kernel, blocking.items(slab.shape), blocking.group, arguments)

    return SlabMethod(blocking.pad, add)


def cutoff(
    queue: Queue, problem: MapProblem, atoms: DeviceAtoms | None = None, kept: NearTables | None = None
) -> SlabMethod:
    """Atoms in bins; each group of points visits the bins near it.

    atoms : of the problem, if already on the device; kept : tables of earlier positions, reused if valid
    """
    blocking = _blocking(queue, problem)
    rounded = int(problem.precision == "float32")
    kernel = queue.kernel(
        "potmap/cutoff.cl", "potmap_cutoff", blocking.width, **problem.switches, RESTS=rounded,
        **blocking.defines,
    )  # fmt: skip
    tables = kept if kept is not None and kept.grid.serves(problem) else NearTables(queue, problem, blocking.pad)
    bins = Bins.of(queue, atoms or DeviceAtoms(queue, problem), tables.grid)
    low, high = problem.ends

    def add(queue: Queue, slab: MapSlab, first: int, last: int) -> None:
        queue.launch(
            kernel, blocking.items(slab.shape), blocking.group,
            dict(
                slab.arguments(problem.n_atoms), **tables.arguments(queue, slab), lowest=queue.vector4(*low),
                highest=queue.vector4(*high), starts=bins.starts, atoms=bins.atoms, rests=bins.rests,
            ),
        )  # fmt: skip

    return SlabMethod(blocking.pad, add, tables.grid.walked(problem), partial(cutoff, kept=tables))


def msm(queue: Queue, problem: MapProblem) -> SlabMethod:
    """Compute the far part from a hierarchy of lattices, each twice as coarse as the previous one."""
    return _far_and_near(Lattices, queue, problem)


def mesh(queue: Queue, problem: MapProblem) -> SlabMethod:
    """Compute the far part from a mesh."""
    return _far_and_near(FarMesh, queue, problem)


def _far_and_near(
    make: Callable[[Queue, MapProblem], Nodes], queue: Queue, problem: MapProblem, kept: Nodes | None = None,
    near_steps: Callable[..., SlabMethod] = cutoff,
) -> SlabMethod:  # fmt: skip
    """Compute the far part from nodes, and the near part as `cutoff` does.

    make : creates the nodes; kept : nodes of earlier positions, reused if valid
    """
    ready = kept if kept is not None and kept.holds(problem) else make(queue, problem)
    atoms = DeviceAtoms(queue, problem, ready.scratch)
    near = replace(ready.near, positions=problem.positions, ends=problem.ends, box=problem.box)
    steps, far = near_steps(queue, near, atoms), None

    def add(queue: Queue, slab: MapSlab, first: int, last: int) -> None:
        nonlocal far
        steps.add(queue, replace(slab, problem=near), first, last)
        if far is None:
            queue.submit()  # the device computes while the host prepares the far part
            far = FarPart(queue, problem, ready, atoms)
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
    """Return the tuned blocking of `blocked`, unless it would increase the padding of this map."""
    tuned = tuned_choice(problem, queue.device).applied("blocked", blocking)
    return tuned if tuned.padded(problem.grid.shape) <= blocking.padded(problem.grid.shape) else blocking


def tuned_choice(problem: MapProblem, device: Device) -> Choice:
    """Return the best measured choice for a similar map; only plain potentials are measured."""
    if not problem.bare:
        return RULES
    return remembered("potmap", VARIANTS, device, problem.precision, problem.evaluations)


VARIANTS: dict[str, MapVariant] = {
    "blocked": MapVariant(
        "potmap/blocked.cl", "potmap_blocked", "two-dimensional blocks of points, vectors on CPUs", blocked,
        choices=Blocking.choices, has_field=True,
    ),
    "cutoff": MapVariant(
        "potmap/cutoff.cl", "potmap_cutoff", "atoms in bins, only near ones", cutoff,
        approximates=True, method="cutoff", has_field=True,
    ),
    "msm": MapVariant(
        "potmap/msm/lattice.cl", "msm_lattice", "near atoms as in `cutoff`, the others by sums on lattices",
        msm, approximates=True, method="msm", has_field=True,
    ),
    "mesh": MapVariant(
        "potmap/cutoff.cl", "potmap_cutoff", "near atoms as in `cutoff`, the others through a mesh", mesh,
        approximates=True, method="mesh", has_field=True,
    ),
}  # fmt: skip
