"""Timing of potential-map kernels for several work-group sizes and numbers of points per work-item."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from ..atoms import Atoms
from ..common.errors import KernelBuildError
from ..grid import Grid
from ..ladder.potmap import gather, rows
from ..opencl.device import Device
from ..opencl.queue import Queue
from ..potential_model import PotentialModel
from ..potmap.problem import MapProblem
from ..potmap.slabs import HostSteps, MapSlab
from .timing import mean_of_middle

Group = tuple[int, int, int]


@dataclass(frozen=True)
class SizeTime:
    """A cell of the table. seconds : kernel time; None if the device does not support the group size"""

    variant: str
    group: Group
    points_per_item: int
    device: str
    seconds: float | None
    evaluations: int

    @property
    def rate(self) -> float | None:
        """Evaluations per second."""
        return None if self.seconds is None else self.evaluations / self.seconds


# Returns the host steps of a rung for a number of points per work-item and a group size.
Sized = Callable[[int, Group], HostSteps]

SIZED: dict[str, Sized] = {
    "gather": lambda points, group: partial(gather, group=group),
    "coarsened": lambda points, group: partial(rows, "coarsened", points, False, most=group),
    "shared": lambda points, group: partial(rows, "shared", points, True, most=group),
    "coalesced": lambda points, group: partial(rows, "coalesced", points, True, most=group),
}
ONE_POINT = ("gather",)  # one point per work-item


def measure_sizes(
    atoms: Atoms, grid: Grid, precision: str, device: Device, groups: Sequence[Group], points: Sequence[int],
    variants: Sequence[str] = tuple(SIZED), runs: int = 5,
) -> Iterator[SizeTime]:  # fmt: skip
    """Time rungs for all group sizes and, if supported, all numbers of points per work-item."""
    problem = MapProblem.of(atoms, grid, PotentialModel(), 1.0, False, precision)
    for variant in (name for name in SIZED if name in variants):
        for own in (1,) if variant in ONE_POINT else points:
            for group in groups:
                seconds = _seconds(SIZED[variant](own, group), problem, device, precision, group, runs)
                yield SizeTime(variant, group, own, str(device), seconds, len(atoms) * len(grid))


def _seconds(
    steps: HostSteps, problem: MapProblem, device: Device, precision: str, group: Group, runs: int
) -> float | None:
    """Return the time of a rung, s; None if the device does not support the group size."""
    if group[0] * group[1] * group[2] > device.largest_group:
        return None

    def once() -> float:
        queue = Queue(device, precision)
        method = steps(queue, problem)
        slab = MapSlab.on(queue, problem, 0, problem.grid.shape[2], method.pad)
        method.add(queue, slab, 0, problem.n_atoms)
        return queue.kernel_seconds

    try:
        once()  # builds the kernels
    except KernelBuildError:
        return None
    return mean_of_middle(once, runs)
