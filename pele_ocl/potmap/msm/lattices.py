"""Lattices of multilevel summation on a device, and the sums on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..mesh import Nodes
from ..mesh.device_mesh import Spreading
from ..problem import MapProblem
from ..slabs import Scratch
from ..sorting import DeviceAtoms
from .levels import LatticeLevel
from .plan import LatticePlan, near_problem
from .splitting import Interpolant

if TYPE_CHECKING:
    from ...opencl.memory import Buffer
    from ...opencl.queue import Queue

GPU_GROUP, GPU_POINTS = (16, 8), (1, 1)  # work-items along x and y per plane; vectors along x and rows per work-item
ROOM_STEP = 1024
CPU_POINTS = (2, 4)  # vectors along x and rows per work-item; groups have one work-item


class Lattices(Nodes):
    """Lattices on a device, prepared for the atoms of a problem at any positions within them.

    levels : from the finest, which atoms and points use, to the coarsest
    """

    def __init__(self, queue: Queue, problem: MapProblem) -> None:
        plan = LatticePlan.of(problem)
        interpolant = Interpolant(plan.preset.nodes)
        scratch = Scratch.kept(queue.device, "nodes")
        super().__init__(near_problem(problem, plan.splitting), interpolant, plan.geometry, scratch)
        self._spreading = Spreading(queue, interpolant, self.scratch)
        self.levels = plan.levels
        self._shares = queue.upload(interpolant.shares)
        self._layout = LatticeLayout.of(queue, max(int(plan.between.reach.max()), int(plan.coarsest.reach.max())))
        self._stencils = [
            dict(
                reach=queue.int4(*stencil.reach.tolist()), weights=queue.upload(stencil.weights),
                extents=queue.upload(stencil.extents, np.int32),
            )
            for stencil in (plan.between, plan.coarsest)
        ]  # fmt: skip

    def potential(self, queue: Queue, atoms: DeviceAtoms) -> Buffer:
        on_nodes = self.scratch(queue, "charges 0", self.levels[0].n_points)
        self._spreading.onto(queue, self.geometry, atoms, on_nodes)
        return self.potential_of(queue, on_nodes)

    def potential_of(self, queue: Queue, charges: Buffer) -> Buffer:
        """Compute the potential on the finest lattice from its charges.

        Charges are restricted to successively coarser lattices, summed on each, and the potentials interpolated back.
        """
        levels, of_levels = self.levels, [charges]
        for k in range(1, len(levels)):
            of_levels.append(self.scratch(queue, f"charges {k}", levels[k].n_points))
            self._restrict(queue, levels[k - 1], levels[k], *of_levels[k - 1 : k + 1])
        found = [self._summed(queue, k, each) for k, each in enumerate(of_levels)]
        for k in range(len(levels) - 1, 0, -1):
            self._prolong(queue, levels[k], levels[k - 1], found[k], found[k - 1])
        return found[0]

    def _restrict(self, queue: Queue, fine: LatticeLevel, coarse: LatticeLevel, source: Buffer, target: Buffer) -> None:
        """Restrict charges to the next coarser lattice: along x, then y, then z."""
        kernel = queue.kernel("potmap/msm/restrict.cl", "msm_restrict", NODES=self.window.nodes)
        shape, first = fine.shape.tolist(), fine.first_of(coarse).tolist()
        for axis, name in enumerate(("narrow", "wide", "")):
            n_inner, n_fine, shape[axis] = int(np.prod(shape[:axis])), shape[axis], int(coarse.shape[axis])
            n_all = int(np.prod(shape))
            to = self.scratch(queue, name, n_all) if name else target
            sizes = dict(n_all=n_all, n_coarse=shape[axis], n_fine=n_fine, n_inner=n_inner, first=first[axis])
            queue.launch(kernel, (n_all,), (64,), dict(shares=self._shares, fine=source, coarse=to, **sizes))
            source = to

    def _prolong(self, queue: Queue, coarse: LatticeLevel, fine: LatticeLevel, source: Buffer, target: Buffer) -> None:
        """Interpolate potentials to the next finer lattice and add them: along z, then y, then x."""
        kernel = queue.kernel("potmap/msm/prolong.cl", "msm_prolong", NODES=self.window.nodes)
        shape, first = coarse.shape.tolist(), fine.first_of(coarse).tolist()
        for axis, name in ((2, "narrow"), (1, "wide"), (0, "")):
            n_inner, n_coarse, shape[axis] = int(np.prod(shape[:axis])), shape[axis], int(fine.shape[axis])
            n_all = int(np.prod(shape))
            to = self.scratch(queue, name, n_all) if name else target
            sizes = dict(n_all=n_all, n_fine=shape[axis], n_coarse=n_coarse, n_inner=n_inner, first=first[axis])
            arguments = dict(adds=not name, shares=self._shares, coarse=source, fine=to, **sizes)
            queue.launch(kernel, (n_all,), (64,), arguments)
            source = to

    def _summed(self, queue: Queue, k: int, charges: Buffer) -> Buffer:
        """Compute the potentials on lattice k from its charges."""
        level, stencil = self.levels[k], self._stencils[k == len(self.levels) - 1]
        found = self.scratch(queue, f"potentials {k}", level.n_points)
        nx, ny, nz = level.shape.tolist()
        layout = self._layout
        queue.launch(
            queue.kernel("potmap/msm/lattice.cl", "msm_lattice", layout.width, **layout.defines),
            layout.items(nx, ny, nz), (*layout.group, 1),
            dict(shape=queue.int4(nx, ny, nz), scale=0.5**k, charges=charges, potentials=found, **stencil),
        )  # fmt: skip
        return found


@dataclass(frozen=True)
class LatticeLayout:
    """Work-items of the sums on lattices; see cl/potmap/msm/lattice.cl.

    width : reals per vector; points : vectors along x and rows per work-item; group : work-items along x and y
    room : charges per plane within reach of a group, rounded up to limit the number of kernels built
    """

    width: int
    points: tuple[int, int]
    group: tuple[int, int]
    room: int

    @classmethod
    def of(cls, queue: Queue, reach: int) -> LatticeLayout:
        """reach : of the largest stencil along an axis"""
        is_cpu = queue.device.kind == "CPU"
        width = queue.device.vector_width(queue.precision) if is_cpu else 1
        points, group = (CPU_POINTS, (1, 1)) if is_cpu else (GPU_POINTS, GPU_GROUP)
        room = (width * points[0] * group[0] + 2 * reach) * (points[1] * group[1] + 2 * reach)
        return cls(width, points, group, -(-room // ROOM_STEP) * ROOM_STEP)

    @property
    def defines(self) -> dict[str, int]:
        """Macros for the kernel."""
        (x, y), (items_x, items_y) = self.points, self.group
        return {"ITEMS_X": items_x, "ITEMS_Y": items_y, "POINTS_X": x, "POINTS_Y": y, "ROOM": self.room}

    def items(self, nx: int, ny: int, nz: int) -> tuple[int, int, int]:
        """Return the work-items for a lattice."""
        block_x, block_y = self.width * self.points[0] * self.group[0], self.points[1] * self.group[1]
        return -(-nx // block_x) * self.group[0], -(-ny // block_y) * self.group[1], nz
