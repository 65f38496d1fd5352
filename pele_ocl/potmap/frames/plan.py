"""A slab of a map that is ready on a device, for one frame of a molecule after the other."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..corrections import correct
from ..map_slab import MapSlab
from ..problem import RUN, MapProblem
from ..slabs import first_evals
from ..variants import VARIANTS

if TYPE_CHECKING:
    from ...opencl.device import Device
    from ...opencl.run import Run

AHEAD = 2  # frames that are launched before the first of them is waited for


class MapPlan:
    """Slices `first` to `last` - 1 of a map on a device.

    A frame is launched and not waited for, so that the host prepares the next one while the device computes.

    slab : its map is the last launched frame's
    seconds : of the kernels of the frames that were waited for
    """

    def __init__(self, problem: MapProblem, variant: str, device: Device, first: int, last: int) -> None:
        self.device, self.seconds = device, 0.0
        self._name, self._variant, self._precision = variant, VARIANTS[variant], problem.precision
        run = self.run()
        self._method = self._variant.run(run, problem)
        self.slab = MapSlab.on(run, problem, first, last, self._method.pad)
        self._under_way: deque[Run] = deque()

    def __reduce__(self) -> tuple[Callable[..., MapPlan], tuple[object, ...]]:
        """Pickle by its problem and the device's title. The slab is made anew, without the frames so far."""
        return MapPlan, (self.slab.problem, self._name, self.device, self.slab.first, self.slab.last)

    def start(self, problem: MapProblem) -> Run:
        """Launch the map of these atoms at the positions of this problem; the run continues after it."""
        if len(self._under_way) == AHEAD:
            self._wait()
        run, slab = self.run(), replace(self.slab, problem=problem)
        self._method = (self._method.moved or self._variant.run)(run, problem)
        run.clear(slab.map)
        step = max(1, problem.n_atoms) if self._method.atoms_a_point is not None else _chunk(self.device, slab)
        for atom in range(0, problem.n_atoms, step):
            self._method.add(run, slab, atom, min(atom + step, problem.n_atoms))
        run.submit()
        if self._variant.is_corrected(self._precision):
            correct(run, slab)
        self._under_way.append(run)
        return run

    def finish(self) -> None:
        """Wait for all frames."""
        while self._under_way:
            self._wait()

    def values(self) -> NDArray[np.floating]:
        """Read the map of the last frame, (slices, ny, nx)."""
        return self.downloaded(self.slab)

    def downloaded(self, slab: MapSlab) -> NDArray[np.floating]:
        """Read the values (slices, ny, nx) of a slab like `slab`."""
        nx, ny, _ = slab.problem.grid.shape
        values = np.empty((1, slab.last - slab.first, ny, nx), self._precision)
        slab.download(self.run(), values)
        found: NDArray[np.floating] = values[0]
        return found

    def places(self, points: NDArray[np.int64]) -> NDArray[np.int32]:
        """Find the places in its map of points (n, 3) of the grid, all of the slab."""
        nx, ny, _ = self.slab.shape
        found: NDArray[np.int64] = ((points[:, 2] - self.slab.first) * ny + points[:, 1]) * nx + points[:, 0]
        return found.astype(np.int32)

    def owns(self, points: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Tell which points (n, 3) of the grid belong to the slab."""
        z = points[:, 2]
        return (z >= self.slab.first) & (z < self.slab.last)

    def run(self) -> Run:
        """A new run on the device."""
        from ...opencl.run import Run

        return Run(self.device, self._precision)

    def _wait(self) -> None:
        """Wait for the first frame under way, and take the time of its kernels."""
        from ...opencl.timing import seconds_of

        run = self._under_way.popleft()
        if run.events:
            run.wait(run.events[-1])
        self.seconds += sum(map(seconds_of, run.events), 0.0)


def _chunk(device: Device, slab: MapSlab) -> int:
    """Return the atoms of a launch of direct sums, whole runs of them.

    No launch is so long that a GPU's driver ends it.

    The methods cutoff and mesh take all atoms at once. So they compute a device's part of the map in one launch.
    """
    return max(1, int(first_evals(device) / slab.n_points) // RUN) * RUN
