"""Mean, standard deviation and extremes of maps at every point, kept on the device that computes them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..slabs import MapSlab

if TYPE_CHECKING:
    from ...opencl.device import Device
    from ...opencl.queue import Queue
    from ...opencl.signature import Arguments

GROUP = 64


class SlabStatistics:
    """Statistics of a slab over frames.

    n : maps that count
    """

    def __init__(self, queue: Queue, slab: MapSlab) -> None:
        self.n, self._slab = 0, slab
        total = "float64" if queue.device.has_float64 else queue.precision
        self._means, self._squares = (queue.empty(slab.n_points, total) for _ in range(2))
        self._lowest, self._highest = (queue.empty(slab.n_points) for _ in range(2))
        self._doubles = int(queue.device.has_float64)

    def add(self, queue: Queue) -> None:
        """Let the slab's map count, once all that the queue has launched is done."""
        self.n += 1
        sums = dict(means=self._means, squares=self._squares, lowest=self._lowest, highest=self._highest)
        self._launch(queue, "add_map", dict(n_maps=self.n, map=self._slab.map, **sums))

    def slabs(self, queue: Queue) -> Iterator[tuple[str, MapSlab]]:
        """Yield the statistics by their names in potmap.models, each as the map of a slab.

        Each is to be downloaded before the next is asked for, as two share the map of the last frame.
        """
        yield "min", replace(self._slab, map=self._lowest)
        yield "max", replace(self._slab, map=self._highest)
        self._launch(queue, "mean_values", dict(means=self._means, to=self._slab.map))
        yield "avg", self._slab
        self._launch(queue, "deviations", dict(n_maps=self.n, squares=self._squares, to=self._slab.map))
        yield "stdev", self._slab

    def _launch(self, queue: Queue, name: str, arguments: Arguments) -> None:
        n = self._slab.n_points
        kernel = queue.kernel("potmap/statistics.cl", name, DOUBLES=self._doubles)
        queue.launch(kernel, (n,), (GROUP,), dict(n_points=n, **arguments))


def values_at(queue: Queue, slab: MapSlab, places: NDArray[np.int32], device: Device) -> NDArray[np.floating]:
    """Read the values of a slab's map at places of it, (n,); they are there when the queue's events are."""
    found = np.empty(len(places), queue.precision)
    if len(places):
        there = queue.empty(len(places))
        kernel = queue.kernel("potmap/statistics.cl", "values_at", DOUBLES=int(device.has_float64))
        arguments = dict(n_points=len(places), points=queue.upload(places, np.int32), map=slab.map, to=there)
        queue.launch(kernel, (len(places),), (GROUP,), arguments)
        queue.events.append(queue.start_read(found, there))
    return found
